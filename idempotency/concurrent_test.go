package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

const copies = 20

// doer does the operation once more, on a client of its own or a shared one.
type doer func(ctx context.Context, client *spanner.Client) (idempotency.Receipt, error)

// atOnce runs 20 copies of one operation at the same time and returns what they
// came to. A copy that finds the operation in progress looks until it has the
// result, as a client would.
func (b *bench) atOnce(t *testing.T, client func() *spanner.Client, do doer) []idempotency.Receipt {
	t.Helper()
	clients := make([]*spanner.Client, copies)
	for i := range clients {
		clients[i] = client()
	}
	receipts, errs := make([]idempotency.Receipt, copies), make([]error, copies)
	var wg sync.WaitGroup
	for i := range copies {
		wg.Go(func() {
			receipts[i], errs[i] = do(t.Context(), clients[i])
			ask := time.NewTicker(20 * time.Millisecond)
			defer ask.Stop()
			for errors.Is(errs[i], idempotency.ErrInProgress) && t.Context().Err() == nil {
				<-ask.C
				receipts[i], errs[i] = b.store.Lookup(t.Context(), op) // takes no lock, so that the owner is not held up
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err, "a loser must end with the result, not with a failure")
	}
	return receipts
}

// oneRan asserts that one of the copies took effect and that all have its result.
func (b *bench) oneRan(t *testing.T, receipts []idempotency.Receipt) {
	t.Helper()
	first := 0
	for _, r := range receipts {
		require.Equal(t, receipts[0].Body, r.Body, "two results of one operation")
		if !r.Replayed {
			first++
		}
	}
	require.Equal(t, 1, first)
	require.EqualValues(t, 1, b.points(t))
	require.EqualValues(t, 1, b.records(t))
}

// F23: copies on several workers at once, one effect, one record, and the
// stored result for all.
func TestCopiesAtOnce(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"front", "bare"} {
		for _, how := range []string{"Do", "Steps", "Claim"} {
			t.Run(where+"/"+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, idempotency.Config{})
				client := func() *spanner.Client { return b.client }
				if where == "bare" {
					// The bare emulator runs one transaction a session.
					client = func() *spanner.Client { return b.db.Bare(t) }
				}
				b.oneRan(t, b.atOnce(t, client, b.doer(t, how)))
			})
		}
	}
}

// The same over a record that is there: one that has expired, one whose owner
// is gone, and one that was given up. Here no unique key of the record helps the
// claim, since it is written over.
func TestCopiesAtOnceOverAnOldRecord(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]func(t *testing.T, b *bench){
		"expired": func(t *testing.T, b *bench) {
			_, err := b.store.Do(t.Context(), op, payload("p"), nothing)
			require.NoError(t, err)
			b.age(t, op, 49*time.Hour)
		},
		"lease over": func(t *testing.T, b *bench) { b.begun(t, op, "in_progress", b.now(t).Add(-time.Hour)) },
		"given up": func(t *testing.T, b *bench) {
			b.begun(t, op, "in_progress", b.now(t))
			_, err := b.client.Apply(t.Context(), []*spanner.Mutation{spanner.Update("Operations",
				[]string{"Scope", "Operation", "OperationKey", "Owner"}, []any{op.Scope, op.Name, op.Key, nil})})
			require.NoError(t, err)
		},
	} {
		for _, how := range []string{"Do", "Steps"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, idempotency.Config{})
				old(t, b)
				b.oneRan(t, b.atOnce(t, func() *spanner.Client { return b.client }, b.doer(t, how)))
			})
		}
	}
}

// doer returns one copy's work, with a body that no other copy would give.
func (b *bench) doer(t *testing.T, how string) doer {
	var mu sync.Mutex
	n := 0
	mine := func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return idempotency.Result{Body: fmt.Append(nil, "run ", n)}, addPoint(ctx, tx)
	}
	return func(ctx context.Context, client *spanner.Client) (receipt idempotency.Receipt, err error) {
		store, err := idempotency.New(client, b.table, idempotency.Config{})
		if err != nil {
			return receipt, err
		}
		switch how {
		case "Do":
			return store.Do(ctx, op, payload("p"), mine)
		case "Steps":
			return store.Steps(ctx, op, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				return run.Complete(ctx, mine)
			})
		default:
			claim, err := store.Claim(op, payload("p"))
			if err != nil {
				return receipt, err
			}
			_, err = client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				receipt, err = claim.Do(ctx, tx, mine)
				return err
			}, idempotency.TransactionOptions(spanner.TransactionOptions{}))
			return receipt, err
		}
	}
}

// The proof can fail: a claim that reads in one transaction and writes in
// another lets every copy that has read before the first one wrote run the
// effect. It is the look-up, run, record of many libraries.
func TestCopiesAtOnceWithReadThenWrite(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"front", "bare"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			client := func() *spanner.Client { return b.client }
			if where == "bare" {
				client = func() *spanner.Client { return b.db.Bare(t) }
			}
			var read sync.WaitGroup
			read.Add(copies)
			key := spanner.Key{op.Scope, op.Name, op.Key}
			b.atOnce(t, client, func(ctx context.Context, client *spanner.Client) (receipt idempotency.Receipt, err error) {
				_, err = client.Single().ReadRow(ctx, "Operations", key, []string{"State"})
				read.Done()
				if err == nil {
					return receipt, nil
				}
				read.Wait()
				_, err = client.ReadWriteTransaction(ctx, addPoint)
				return receipt, err
			})
			require.EqualValues(t, copies, b.points(t))
		})
	}
}

// Two requests under one key at once: one runs, the other is told, whoever
// comes first.
func TestMismatchInARace(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Do", "Steps"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			errs := make([]error, copies)
			var wg sync.WaitGroup
			for i := range copies {
				wg.Go(func() {
					fp := payload(fmt.Sprint("request ", i))
					if how == "Do" {
						_, errs[i] = b.store.Do(t.Context(), op, fp, effect(idempotency.Result{}))
						return
					}
					_, errs[i] = b.store.Steps(t.Context(), op, fp, func(ctx context.Context, run *idempotency.Run) error {
						return run.Complete(ctx, effect(idempotency.Result{}))
					})
				})
			}
			wg.Wait()
			ran := 0
			for _, err := range errs {
				if err == nil {
					ran++
					continue
				}
				require.ErrorIs(t, err, idempotency.ErrMismatch)
			}
			require.Equal(t, 1, ran)
			require.EqualValues(t, 1, b.points(t))
		})
	}
}

func TestMismatchWhileInProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	b.begun(t, op, "in_progress", b.now(t))
	_, err := b.store.Do(t.Context(), op, payload("other"), effect(idempotency.Result{}))
	require.ErrorIs(t, err, idempotency.ErrMismatch)
	_, err = b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.ErrorIs(t, err, idempotency.ErrInProgress)
	after, ok := idempotency.RetryAfter(err)
	require.True(t, ok)
	require.Positive(t, after)
	require.Zero(t, b.points(t))
}
