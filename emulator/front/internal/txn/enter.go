package txn

import (
	"context"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
)

// enter brings an RPC into the transaction: it opens it first if need be, which waits for the database's turn. It
// gives the transaction of the emulator, and what to call when the RPC is over. answer makes the error of a
// transaction that has ended.
func (t *Txn) enter(ctx context.Context, answer func(State, []byte, error) error) (*backend.Tx, func(), error) {
	for {
		t.mu.Lock()
		switch s := t.state; {
		case s.ended():
			err := answer(s, t.ID(), t.cause)
			t.mu.Unlock()
			return nil, nil, err
		case s == Committing:
			t.mu.Unlock()
			return nil, nil, errUsed
		case s == Active:
			tx, mine := t.tx, t.turn
			if mine.Enter() {
				t.working++
				t.mu.Unlock()
				leave := func() { mine.Leave(); t.leave() }
				holds, err := t.m.pool.Holds(ctx, tx)
				if holds {
					return tx, leave, nil
				}
				leave()
				if err != nil {
					return nil, nil, err
				}
				t.Abort(ctx, "The transaction was lost with the emulator, which was started anew.")
				continue
			}
			t.mu.Unlock()
			// The turn was taken just now. Whoever took it ends the transaction.
			select {
			case <-t.gone:
			case <-ctx.Done():
				return nil, nil, fromContext(ctx.Err())
			}
			continue
		}
		t.state = Waiting
		t.mu.Unlock()
		if err := t.open(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// open gets the transaction of the emulator and the turn. Only one RPC of the transaction does that, the others wait
// for it. The emulator begins before the turn has come: that takes no lock and costs the owner no time.
func (t *Txn) open(ctx context.Context) error {
	if err := acquire(ctx, t.opening); err != nil {
		return err
	}
	defer func() { <-t.opening }()
	if t.State() != Waiting {
		return nil
	}
	tx, err := t.m.pool.Begin(ctx, t.Database, t.options)
	if err != nil {
		t.stopWaiting()
		return err
	}
	mine, err := t.m.line(t.Database).Wait(ctx, t.gone, t.lost)
	if err == nil {
		t.mu.Lock()
		if t.state == Waiting {
			t.state, t.tx, t.turn = Active, tx, mine
			t.mu.Unlock()
			mine.Leave()
			return nil
		}
		t.mu.Unlock()
		mine.Done()
	}
	t.m.pool.Rollback(context.WithoutCancel(ctx), tx)
	t.stopWaiting()
	if err := ctx.Err(); err != nil {
		return fromContext(err)
	}
	return nil // ended meanwhile: enter says how
}

// stopWaiting goes back to Begun. Others that wait to open the transaction go on from there.
func (t *Txn) stopWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Waiting {
		t.state = Begun
	}
}

// leave ends what enter began. The last RPC to leave a transaction that has ended gives the session back.
func (t *Txn) leave() {
	t.mu.Lock()
	t.working--
	t.used = time.Now()
	tx := t.giveLocked()
	t.mu.Unlock()
	if tx != nil {
		t.m.pool.Give(tx.Session)
	}
}

// giveLocked takes the transaction of the emulator out if it has ended and nothing uses it any more.
func (t *Txn) giveLocked() *backend.Tx {
	if t.tx == nil || t.working > 0 || !t.tidied {
		return nil
	}
	tx := t.tx
	t.tx = nil
	if t.keep {
		return nil
	}
	return tx
}
