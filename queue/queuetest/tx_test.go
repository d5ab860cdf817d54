package queuetest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func ack(ctx context.Context, m *queuetest.Memory, messages ...*queue.Message) error {
	return run(ctx, m, func(ctx context.Context, tx backend.Tx) error {
		for _, message := range messages {
			if err := tx.Ack(ctx, message.Delivery()); err != nil {
				return err
			}
		}
		return nil
	})
}

func run(ctx context.Context, m *queuetest.Memory, f func(context.Context, backend.Tx) error) error {
	return m.RunTx(ctx, backend.TxOptions{}, f)
}

func peek(t *testing.T, m *queuetest.Memory) []*queue.Message {
	t.Helper()
	messages, err := m.Queue().Peek(t.Context(), 1000)
	require.NoError(t, err)
	return messages
}

// A message that was sent again under its key is another delivery, and no ack of the old one takes it.
func TestAckIsGuarded(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	send(t, m, out(1, "old"))
	old := peek(t, m)[0]
	resent := backend.Outgoing{Key: old.Key, Payload: []byte("new"), DeliverTime: m.Now().Add(time.Hour)}
	require.NoError(t, run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
		require.Nil(t, tx.Spanner())
		return errors.Join(tx.Ack(ctx, old.Delivery()), tx.Send(ctx, resent))
	}))
	err := ack(t.Context(), m, old)
	require.ErrorIs(t, err, queue.ErrNotHeld)
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(err))

	p, err := m.Queue().Probe(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, queue.Moved, p)
	current := peek(t, m)[0]
	require.Equal(t, "new", string(current.Payload))
	p, err = m.Queue().Probe(t.Context(), current)
	require.NoError(t, err)
	require.Equal(t, queue.Present, p)
	require.NoError(t, ack(t.Context(), m, current))
	p, err = m.Queue().Probe(t.Context(), current)
	require.NoError(t, err)
	require.Equal(t, queue.Gone, p)
	queuetest.RequireEmpty(t, m.Queue())
}

func TestAckAllNamesTheMissing(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	send(t, m, out(1, ""), out(2, ""), out(3, ""))
	var ds []backend.Delivery
	for _, message := range peek(t, m) {
		ds = append(ds, message.Delivery())
	}
	ds[1].DeliverTime = ds[1].DeliverTime.Add(1)
	ds = append(ds, ds[0])
	require.NoError(t, run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
		missing, err := tx.AckAll(ctx, ds)
		require.Equal(t, []int{1, 3}, missing, "the moved one, and the one that is given twice")
		return err
	}))
	queuetest.RequireKeys(t, m.Queue(), spanner.Key{"c", 2})
}

func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	own := errors.New("the function's own")
	other := backend.Outgoing{Key: spanner.Key{"c", int64(2)}}
	for name, c := range map[string]struct {
		f    func(context.Context, backend.Tx, *queue.Message) error
		want error
		code codes.Code
	}{
		"when the function fails": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			return errors.Join(tx.Ack(ctx, m.Delivery()), tx.Send(ctx, other), own)
		}, own, codes.Unknown},
		"when an ack misses": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			d := m.Delivery()
			d.DeliverTime = d.DeliverTime.Add(1)
			if err := tx.Send(ctx, other); err != nil {
				return err
			}
			return tx.Ack(ctx, d)
		}, queue.ErrNotHeld, codes.OutOfRange},
		"when a miss is swallowed": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			_ = tx.Ack(ctx, m.Delivery())
			_ = tx.Ack(ctx, m.Delivery())
			return nil
		}, nil, codes.NotFound},
		"when a key is taken": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			return errors.Join(tx.Send(ctx, other), tx.Send(ctx, backend.Outgoing{Key: m.Key}))
		}, nil, codes.AlreadyExists},
		"when a key is sent twice": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			return errors.Join(tx.Ack(ctx, m.Delivery()), tx.Send(ctx, other), tx.Send(ctx, other))
		}, nil, codes.AlreadyExists},
		"when the context has ended": {func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
			ended, end := context.WithCancel(ctx)
			end()
			return errors.Join(tx.Send(ctx, other), tx.Ack(ended, m.Delivery()), ended.Err())
		}, context.Canceled, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := queuetest.New(mails, queuetest.Options{})
			send(t, m, out(1, "work"))
			before := peek(t, m)
			err := run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error { return c.f(ctx, tx, before[0]) })
			require.Error(t, err)
			require.Equal(t, c.code, spanner.ErrCode(err), "%v", err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.Equal(t, before, peek(t, m))
			require.NoError(t, ack(t.Context(), m, before[0]), "and no lock is left")
		})
	}
}

func TestTransactionIsOverWithItsFunction(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	send(t, m, out(1, "work"))
	d := peek(t, m)[0].Delivery()
	var kept backend.Tx
	require.Panics(t, func() {
		_ = run(t.Context(), m, func(_ context.Context, tx backend.Tx) error {
			kept = tx
			panic("in a handler")
		})
	})
	require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(kept.Ack(t.Context(), d)))
	require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(kept.Send(t.Context(), backend.Outgoing{})))

	require.NoError(t, run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
		err := run(ctx, m, func(context.Context, backend.Tx) error { return nil })
		require.ErrorContains(t, err, "nested")
		return tx.Ack(ctx, d)
	}))
	queuetest.RequireEmpty(t, m.Queue())
}

// Two holders of one delivery: the second waits for the first, and takes it only if the first rolled back.
func TestSecondHolderWaits(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprint(commits), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := queuetest.New(mails, queuetest.Options{})
				send(t, m, out(1, "work"))
				message := peek(t, m)[0]
				first := make(chan error, 1)
				go func() {
					first <- run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
						if err := tx.Ack(ctx, message.Delivery()); err != nil {
							return err
						}
						time.Sleep(time.Minute)
						if commits {
							return nil
						}
						return errors.New("no")
					})
				}()
				synctest.Wait()
				impatient, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, ack(impatient, m, message), context.DeadlineExceeded)
				begun := time.Now()
				err := ack(t.Context(), m, message)
				require.Equal(t, 59*time.Second, time.Since(begun))
				if commits {
					require.ErrorIs(t, err, queue.ErrNotHeld)
					require.NoError(t, <-first)
				} else {
					require.NoError(t, err)
					require.Error(t, <-first)
				}
			})
		})
	}
}

// Transactions that take the same keys in any order all end, and none of them loses what another one wrote: each adds one
// to a counter that is kept in a message's payload.
func TestTransactionsAreSerializable(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	const keys, workers, rounds = 5, 8, 30
	for i := range keys {
		send(t, m, out(i, ""))
	}
	current := func(i int) backend.Delivery {
		messages, err := m.Queue().Peek(t.Context(), keys)
		if err == nil {
			for _, message := range messages {
				if message.Key[1] == int64(i) {
					return message.Delivery()
				}
			}
		}
		return backend.Delivery{Key: spanner.Key{"c", int64(i)}}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for done := 0; done < rounds; {
				order := rand.Perm(keys)[:3]
				err := run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
					for _, i := range order {
						d := current(i)
						if err := tx.Ack(ctx, d); err != nil {
							return err
						}
						if err := tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: append(d.Payload, '+'), DeliverTime: d.DeliverTime.Add(1)}); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					done++
				} else if !errors.Is(err, queue.ErrNotHeld) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	total := 0
	for _, message := range peek(t, m) {
		total += len(message.Payload)
	}
	require.Equal(t, workers*rounds*3, total)
}
