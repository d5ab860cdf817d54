package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNoSpanner is wrapped by what cannot be done in memory because it needs the database.
var ErrNoSpanner = errors.New("queuetest: a queue in memory has no Spanner transaction; test this against the emulator, with emulatortest")

// tx is one run of a transaction. Its keys are locked until it ends, so that transactions are serializable.
type tx struct {
	memory *Memory
	age    int64

	// Guarded by the locks' mutex.
	locked map[string]struct{}
	closed bool          // the keys were given back
	ended  chan struct{} // closed then

	mu       sync.Mutex
	over     bool                // the function has returned: nothing below is changed any more
	poisoned bool                // a call has failed in a way after which it must not commit
	giveWay  *giveWay            // it is to be run again
	acked    map[string]struct{} // by key
	sends    []backend.Outgoing
	writes   []write
}

// write is something else that is done at the commit, under a lock of its own.
type write struct {
	lock string
	do   func(*Memory) // with the memory's mutex held
}

var lastAge atomic.Int64

var errOver = status.Error(codes.FailedPrecondition, "queuetest: the transaction was used after its function had returned")

// insideTx marks the context of a transaction function.
type insideTx struct{}

// RunTx implements the seam.
func (m *Memory) RunTx(ctx context.Context, _ backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	if ctx.Value(insideTx{}) != nil {
		return status.Error(codes.FailedPrecondition, "queuetest: Cloud Spanner does not support nested transactions")
	}
	age := lastAge.Add(1)
	for {
		t := &tx{
			memory: m,
			age:    age,
			locked: make(map[string]struct{}),
			ended:  make(chan struct{}),
			acked:  make(map[string]struct{}),
		}
		again, err := t.run(ctx, f)
		var way *giveWay
		switch {
		case errors.As(err, &way):
			if err := way.wait(ctx); err != nil {
				return err
			}
		case !again:
			return err
		}
	}
}

// run runs the function and commits. It reports whether the function is to be run again, and returns a giveWay when it is
// to be run again later.
func (t *tx) run(ctx context.Context, f func(context.Context, backend.Tx) error) (again bool, err error) {
	landsLater := false
	defer func() {
		if !landsLater {
			t.memory.locks.unlock(t)
		}
	}()
	if err := t.call(ctx, f); err != nil {
		return false, err
	}
	fault := t.memory.faultOf(OpCommit)
	if fault.Late > 0 {
		landsLater = true
		lasting := context.WithoutCancel(ctx)
		time.AfterFunc(fault.Late, func() {
			_ = t.commit(lasting) // whoever waited for the answer has been given another one
			t.memory.locks.unlock(t)
		})
		return false, fault.Err
	}
	err = fault.run(ctx, func() error { return t.commit(ctx) })
	return err == nil && fault.Rerun, err
}

// call runs the function, and closes the transaction for it when it is over, also by a panic.
func (t *tx) call(ctx context.Context, f func(context.Context, backend.Tx) error) (err error) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.over = true
		if t.giveWay != nil {
			err = t.giveWay // whatever the function made of it
		}
	}()
	return f(context.WithValue(ctx, insideTx{}, true), t)
}

// Spanner returns nil: there is no such transaction in memory.
func (t *tx) Spanner() *spanner.ReadWriteTransaction { return nil }

// Ack implements the seam.
func (t *tx) Ack(ctx context.Context, d backend.Delivery) error {
	there, err := t.take(ctx, d)
	if err != nil {
		return err
	}
	if there {
		return nil
	}
	t.fail(nil)
	return fmt.Errorf("%w: queue %s, key %v, due %v: %w", backend.ErrNotHeld, t.memory.definition.Name, d.Key, d.DeliverTime,
		status.Error(codes.OutOfRange, "ASSERT_ROWS_MODIFIED expected 1 rows modified, but found 0"))
}

// AckAll implements the seam.
func (t *tx) AckAll(ctx context.Context, ds []backend.Delivery) (missing []int, err error) {
	for i, d := range ds {
		there, err := t.take(ctx, d)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// take acknowledges the delivery if it is there.
func (t *tx) take(ctx context.Context, d backend.Delivery) (bool, error) {
	id := rowcodec.ID(d.Key)
	if err := t.lock(ctx, id); err != nil {
		return false, err
	}
	m := t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := m.rows[id]
	if t.over {
		return false, errOver
	}
	if _, acked := t.acked[id]; acked || r == nil || !r.message.DeliverTime.Equal(d.DeliverTime) {
		return false, nil
	}
	t.acked[id] = struct{}{}
	return true, nil
}

// lock takes a key. A failure leaves the transaction unable to commit.
func (t *tx) lock(ctx context.Context, id string) error {
	t.mu.Lock()
	over, way := t.over, t.giveWay
	t.mu.Unlock()
	switch {
	case over:
		return errOver
	case way != nil:
		return status.Error(codes.Aborted, way.Error())
	}
	err := t.memory.locks.lock(ctx, t, id)
	if err == nil {
		return nil
	}
	if errors.As(err, &way) {
		err = status.Error(codes.Aborted, err.Error())
	}
	t.fail(way)
	return err
}

// fail makes the transaction unable to commit; with a giveWay it is to be run again.
func (t *tx) fail(way *giveWay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.poisoned, t.giveWay = true, way
}

// Send implements the seam.
func (t *tx) Send(_ context.Context, out backend.Outgoing) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return errOver
	}
	t.sends = append(t.sends, out)
	return nil
}

// atCommit adds a write to the commit.
func (t *tx) atCommit(lock string, do func(*Memory)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.writes = append(t.writes, write{lock, do})
	}
}

// commit makes what was written visible, all or nothing.
func (t *tx) commit(ctx context.Context) error {
	if t.poisoned {
		return status.Error(codes.NotFound, "queuetest: the transaction cannot commit: an acknowledgement in it has failed")
	}
	for _, out := range t.sends {
		if err := t.memory.locks.lock(ctx, t, rowcodec.ID(out.Key)); err != nil {
			return err
		}
	}
	for _, w := range t.writes {
		if err := t.memory.locks.lock(ctx, t, w.lock); err != nil {
			return err
		}
	}
	m := t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := make(map[string]bool)
	for _, out := range t.sends {
		id := rowcodec.ID(out.Key)
		_, acked := t.acked[id]
		if (m.rows[id] != nil && !acked) || fresh[id] {
			return status.Errorf(codes.AlreadyExists, "queuetest: key %v is already in queue %s", out.Key, m.definition.Name)
		}
		fresh[id] = true
	}
	for id := range t.acked {
		m.removeLocked(id)
	}
	for _, out := range t.sends {
		m.insertLocked(out)
	}
	for _, w := range t.writes {
		w.do(m)
	}
	m.counts.Commits++
	m.wakeLocked()
	return nil
}

// Ack fails: a transaction of Google's client cannot be one of a queue in memory.
func (m *Memory) Ack(context.Context, backend.SpannerTx, backend.Delivery) error { return ErrNoSpanner }

// AckAll fails as Ack does.
func (m *Memory) AckAll(context.Context, backend.SpannerTx, []backend.Delivery) ([]int, error) {
	return nil, ErrNoSpanner
}
