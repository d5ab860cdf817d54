package table

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// ordered is a table whose messages are ordered by account.
func ordered() schema.QueueTable {
	return schema.QueueTable{
		Queue: schema.Queue{
			Name: "T",
			KeyColumns: []schema.Column{
				{Name: "Account", Type: schema.String(20), NotNull: true},
				{Name: "Id", Type: schema.Int64(), NotNull: true},
			},
			Payload: schema.Bytes(schema.Max),
		},
		OrderColumns: 1,
	}
}

func numbered(account string, n int64) backend.Outgoing {
	return backend.Outgoing{Key: spanner.Key{account, n}, Payload: []byte("x")}
}

func (w *world) sendNumbered(q *Queue, account string, numbers ...int64) {
	w.t.Helper()
	var out []backend.Outgoing
	for _, n := range numbers {
		out = append(out, numbered(account, n))
	}
	require.NoError(w.t, q.Send(w.t.Context(), out))
}

// names returns what was delivered, as account and number.
func names(ds []backend.Delivery) []string {
	out := []string{}
	for _, d := range ds {
		out = append(out, fmt.Sprint(d.Key[0], d.Key[1]))
	}
	return out
}

// takeAll claims until nothing more can be had.
func (w *world) takeAll(q *Queue) []backend.Delivery {
	w.t.Helper()
	s := &stream{queue: q, batch: 10, sleeper: process.join(q.name)}
	defer s.sleeper.leave()
	var ds []backend.Delivery
	for !s.quiet {
		b, err := s.try(w.t.Context())
		require.NoError(w.t, err)
		ds = append(ds, b.granted...)
	}
	return ds
}

func TestOneOfALineAtATimeInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordered())
	q := w.bare(Options{LeaseLength: long})
	w.sendNumbered(q, "a", 5, 3, 4) // in the order that they are given, not that of their keys
	w.sendNumbered(q, "b", 1)
	w.sendNumbered(q, "a", 1)
	first := w.takeAll(q)
	require.Equal(t, []string{"a5", "b1"}, names(first))
	require.Empty(t, w.takeAll(q), "the others wait")
	for _, want := range []string{"a3", "a4", "a1"} {
		require.NoError(t, ack(t.Context(), q, first[0]))
		first = w.takeAll(q)
		require.Equal(t, []string{want}, names(first))
	}
	require.NoError(t, ack(t.Context(), q, first[0]))
	require.Empty(t, w.takeAll(q))
}

// A message that would have been first comes when another is in flight: it waits all the same.
func TestEarlierMessageWaitsForTheOneInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordered())
	q := w.bare(Options{LeaseLength: long})
	w.sendNumbered(q, "a", 1)
	held := w.takeAll(q)
	early := numbered("a", 2)
	early.DeliverTime = held[0].DeliverTime.Add(-time.Second)
	require.NoError(t, q.Send(t.Context(), []backend.Outgoing{early}))
	w.sendNumbered(q, "a", 3)
	require.Empty(t, w.takeAll(q))

	// Given back, the one in flight is one of many again.
	require.NoError(t, q.Release(t.Context(), held))
	got := w.takeAll(q)
	require.Equal(t, []string{"a2"}, names(got))
	require.NoError(t, ack(t.Context(), q, got[0]))
	require.Equal(t, []string{"a1"}, names(w.takeAll(q)))
}

// Whatever takes the first of a line away brings the next one back at once.
func TestNextOfTheLine(t *testing.T) {
	t.Parallel()
	resend := func(after time.Duration) func(context.Context, *Queue, backend.Delivery) error {
		return func(ctx context.Context, q *Queue, d backend.Delivery) error {
			return q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
				if err := tx.Ack(ctx, d); err != nil {
					return err
				}
				return tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: d.DeliverTime.Add(after)})
			})
		}
	}
	for name, c := range map[string]struct {
		do   func(context.Context, *Queue, backend.Delivery) error
		next string
	}{
		"acknowledged": {ack, "a2"},
		"acknowledged in a batch": {func(ctx context.Context, q *Queue, d backend.Delivery) error {
			return q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
				_, err := tx.AckAll(ctx, []backend.Delivery{d})
				return err
			})
		}, "a2"},
		"acknowledged in a transaction of the caller's": {func(ctx context.Context, q *Queue, d backend.Delivery) error {
			_, err := q.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				return q.Ack(ctx, tx, d)
			})
			return err
		}, "a2"},
		"all acknowledged in a transaction of the caller's": {func(ctx context.Context, q *Queue, d backend.Delivery) error {
			_, err := q.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := q.AckAll(ctx, tx, []backend.Delivery{d})
				return err
			})
			return err
		}, "a2"},
		"sent again for later":       {resend(time.Hour), "a2"},
		"sent again and still first": {resend(time.Nanosecond), "a1"},
		"given back": {func(ctx context.Context, q *Queue, d backend.Delivery) error {
			return q.Release(ctx, []backend.Delivery{d})
		}, "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordered())
			q := w.bare(Options{LeaseLength: long})
			w.sendNumbered(q, "a", 1, 2, 3)
			held := w.takeAll(q)
			require.Equal(t, []string{"a1"}, names(held))
			require.NoError(t, c.do(t.Context(), q, held[0]))
			got := w.takeAll(q)
			require.Equal(t, []string{c.next}, names(got))
		})
	}
}

func TestOrderedKeysThatAreNull(t *testing.T) {
	t.Parallel()
	s := ordered()
	s.Queue.KeyColumns[0].NotNull = false
	s.Queue.KeyColumns = append(s.Queue.KeyColumns, schema.Column{Name: "Part", Type: schema.Bytes(4)})
	s.Queue.PrimaryKey = []schema.KeyPart{{Column: "Account", Desc: true}, {Column: "Part"}, {Column: "Id"}}
	s.OrderColumns = 2
	s.Shards = 3
	w := newWorld(t, s)
	q := w.bare(Options{LeaseLength: long})
	var out []backend.Outgoing
	for _, key := range []spanner.Key{{nil, nil, 1}, {nil, nil, 2}, {nil, []byte{}, 3}, {"a", nil, 4}, {"a", nil, 5}} {
		m, err := q.Check(backend.Outgoing{Key: key, Payload: []byte("x")})
		require.NoError(t, err)
		out = append(out, m)
	}
	require.NoError(t, q.Send(t.Context(), out))
	var order []int64
	for len(order) < len(out) {
		got := w.takeAll(q)
		require.NotEmpty(t, got)
		for _, d := range got {
			order = append(order, d.Key[2].(int64))
			require.NoError(t, ack(t.Context(), q, d))
		}
	}
	require.ElementsMatch(t, []int64{1, 3, 4}, order[:3])
	require.ElementsMatch(t, []int64{2, 5}, order[3:])
}

// Many workers, many lines: each line is worked off in order, one message at a time.
func TestManyWorkersKeepTheOrder(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(*world) *Queue{
		"bare":  func(w *world) *Queue { return w.bare(Options{LeaseLength: long, PollInterval: 50 * time.Millisecond}) },
		"front": func(w *world) *Queue { return w.front(Options{LeaseLength: long, PollInterval: 50 * time.Millisecond}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ordered()
			s.Shards = 2
			w := newWorld(t, s)
			const accounts, each = 6, 8
			sender := through(w)
			var numbers []int64
			for i := range each {
				numbers = append(numbers, int64(i))
			}
			for a := range accounts {
				w.sendNumbered(sender, fmt.Sprint("account", a), numbers...)
			}
			ctx, done := context.WithTimeout(t.Context(), patience)
			defer done()
			var mu sync.Mutex
			flight, order, total := make(map[any]int), make(map[any][]int64), 0
			var workers sync.WaitGroup
			for range 4 {
				q := through(w)
				workers.Go(func() {
					for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 3}) {
						if err != nil {
							if ctx.Err() == nil {
								t.Error(err)
							}
							return
						}
						account := d.Key[0]
						mu.Lock()
						if flight[account]++; flight[account] > 1 {
							t.Errorf("%v: two in flight", account)
						}
						order[account] = append(order[account], d.Key[1].(int64))
						mu.Unlock()
						err := q.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
							if err := tx.Ack(ctx, d); err != nil {
								return err
							}
							mu.Lock()
							defer mu.Unlock()
							flight[account] = 0 // from its commit on another may be handed out
							return nil
						})
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						if total++; total == accounts*each {
							done()
						}
						mu.Unlock()
					}
				})
			}
			workers.Wait()
			require.Equal(t, accounts*each, total)
			for a := range accounts {
				require.Equal(t, numbers, order[fmt.Sprint("account", a)])
			}
		})
	}
}
