package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/spanner"
)

// maxStepName is the length of a step's name in characters, as the Point
// column has it.
const maxStepName = 128

// Run is one run of an operation in steps, given to the function of
// Store.Steps and good until that returns. Its steps come one after the other,
// not at the same time.
type Run struct {
	store  *Store
	claim  *Claim
	keeper *keeper
	// began says that this run made the record.
	began bool
	// called says that this run may have called the outside.
	called bool
	// inStep catches steps within steps, which would wait for themselves, and
	// steps at the same time.
	inStep atomic.Bool
	// next is the number of the step that comes next.
	next int
	// receipt is set by the write that ended the operation.
	receipt *Receipt

	// mu is held while this run writes its record, so that a renewal and a
	// step do not make each other abort.
	mu sync.Mutex
	// rec is the record as this run last wrote it.
	rec *record
}

// errGone in place of a change says that the record is to be deleted.
var errGone = errors.New("idempotency: delete the record")

// write commits one change of the record, and asserts that the record is still
// this run's. alter changes the record it is given, and may do more in tx. is
// says of a record whether the change is in it.
func (run *Run) write(ctx context.Context, alter func(context.Context, *spanner.ReadWriteTransaction, *record) error, is func(*record) bool) error {
	run.mu.Lock()
	defer run.mu.Unlock()
	var (
		s    = run.store
		next *record
		sent sending
	)
	at, err := s.settle(ctx, change{
		op:  run.claim.op,
		tag: "spanqueue-step",
		apply: func(ctx context.Context, tx *spanner.ReadWriteTransaction) (err error) {
			defer func() {
				if err != nil {
					poison(tx, err)
				}
			}()
			sent.run()
			if next, err = s.readLocked(ctx, tx, run.claim.op); err != nil {
				return err
			}
			if err := run.assertOwner(next); err != nil {
				return err
			}
			if is(next) {
				return errNothingToWrite // an earlier run of this write has landed
			}
			err = alter(ctx, tx, next)
			if errors.Is(err, errGone) {
				return tx.BufferWrite([]*spanner.Mutation{spanner.Delete(s.table, run.claim.op.storedKey())})
			}
			if err != nil {
				return err
			}
			next.leasedAt, next.lease = spanner.CommitTimestamp, s.cfg.Lease
			return s.buffer(tx, next, true)
		},
		landed: func(r *record, _ time.Time) (bool, error) {
			next = r
			if err := run.assertOwner(r); err != nil {
				return false, err
			}
			return is(r), nil
		},
	})
	if err != nil {
		return err
	}
	if next.completedAt.Equal(spanner.CommitTimestamp) {
		next.completedAt = at
	}
	run.rec = next
	run.keeper.renewed(sent.landed(at))
	return nil
}

// assertOwner is the fence: r must be as this run claimed it.
func (run *Run) assertOwner(r *record) error {
	if r != nil && r.owner == run.claim.owner && r.generation == run.rec.generation {
		return nil
	}
	return fmt.Errorf("%w: %v", ErrNotOwner, run.claim.op)
}

// enter begins a step. It returns the recorded step that comes next, if the
// operation has passed it or left it open. The caller defers leave.
func (run *Run) enter(name string, k kind) (entry, bool, error) {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxStepName || !utf8.ValidString(name) {
		return entry{}, false, fmt.Errorf("%w: the step name %q has %d characters; it needs 1 to %d of UTF-8", ErrInvalid, name, n, maxStepName)
	}
	if err := run.turn(name); err != nil {
		return entry{}, false, err
	}
	e, found, err := run.recorded(name, k)
	if err != nil {
		run.leave()
	}
	return e, found, err
}

func (run *Run) turn(name string) error {
	if !run.inStep.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: step %q begins while another runs; steps come one after the other", ErrInvalid, name)
	}
	if run.receipt != nil {
		run.leave()
		return fmt.Errorf("%w: step %q comes after the operation was completed", ErrInvalid, name)
	}
	return nil
}

func (run *Run) leave() { run.inStep.Store(false) }

func (run *Run) recorded(name string, k kind) (entry, bool, error) {
	steps := run.record().steps
	for _, e := range steps[:min(run.next, len(steps))] {
		if e.Name == name {
			return entry{}, false, fmt.Errorf("%w: step %q comes twice in one operation; its outside calls would share a key", ErrInvalid, name)
		}
	}
	e, found, err := steps.at(run.next, name, k)
	if room := steps.room(); err == nil && !found && room < run.store.cfg.MaxBody {
		// Before the step, since what a call has done cannot be taken back.
		return entry{}, false, fmt.Errorf("%w: the results of %d steps leave room for %d bytes, and that of step %q may have Config.MaxBody, %d",
			ErrTooLarge, len(steps), max(0, room), name, run.store.cfg.MaxBody)
	}
	return e, found, err
}

// record is the record as this run last wrote it. Renewals write it too.
func (run *Run) record() *record {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.rec
}

// passed makes the step the recovery point and returns its result in the form
// in which a resume gets it.
func passed[T any](run *Run, e entry) (T, error) {
	var v T
	if err := json.Unmarshal(e.Value, &v); err != nil {
		return v, fmt.Errorf("idempotency: the recorded result of step %q of %v: %w", e.Name, run.claim.op, err)
	}
	run.next++
	return v, nil
}

// encode makes the result of a step ready to be kept.
func (run *Run) encode(name string, v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: the result of step %q: %w", ErrInvalid, name, err)
	}
	if len(text) > run.store.cfg.MaxBody {
		return nil, fmt.Errorf("%w: the result of step %q has %d bytes and Config.MaxBody is %d", ErrTooLarge, name, len(text), run.store.cfg.MaxBody)
	}
	return text, nil
}
