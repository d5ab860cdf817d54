package table

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

// receiver is a Receive that runs until the test ends.
type receiver struct {
	arrived chan arrival
	calls   *rpcs
	queue   *Queue
}

type arrival struct {
	backend.Delivery
	at time.Time
}

func (w *world) receive(o Options) *receiver {
	w.t.Helper()
	r := &receiver{arrived: make(chan arrival, 1000), calls: newRPCs()}
	r.queue = w.open(w.db.Bare(w.t, r.calls.options()...), o)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for d, err := range r.queue.Receive(ctx, backend.ReceiveRequest{MaxDuration: time.Hour}) {
			if err != nil {
				if ctx.Err() == nil {
					w.t.Error(err)
				}
				return
			}
			r.arrived <- arrival{d, time.Now()}
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// next waits for the next message.
func (r *receiver) next(t *testing.T) arrival {
	t.Helper()
	select {
	case a := <-r.arrived:
		return a
	case <-time.After(patience):
		t.Fatal("no message came")
		return arrival{}
	}
}

// asleep waits until the receiver is in a pause of at least d.
func (r *receiver) asleep(t *testing.T, d time.Duration) {
	t.Helper()
	wait(t, "the receiver to be at rest", func() bool {
		process.mu.Lock()
		defer process.mu.Unlock()
		for s := range process.sleepers[r.queue.name] {
			return s.idle && s.pause >= d
		}
		return false
	})
}

// stranger sends a message as a program of another process does, which wakes nobody here.
func (w *world) stranger(id string, columns map[string]any) {
	w.t.Helper()
	row := map[string]any{"Id": id, "Payload": []byte("x"), "SentAt": spanner.CommitTimestamp}
	for k, v := range columns {
		row[k] = v
	}
	_, err := w.db.Bare(w.t).Apply(w.t.Context(), []*spanner.Mutation{spanner.InsertMap("T", row)})
	require.NoError(w.t, err)
}

// A message of another process is picked up within the poll interval, and an idle queue costs a look an interval.
func TestPickupIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	const interval = 400 * time.Millisecond
	r := w.receive(Options{LeaseLength: long, PollInterval: interval})
	for _, id := range ids(4) {
		r.asleep(t, interval/2)
		sent := time.Now()
		w.stranger(id, nil)
		got := r.next(t)
		require.Equal(t, id, got.Key[0])
		require.Less(t, got.at.Sub(sent), interval+4*time.Second, "the interval, a read and a claim on a busy machine")
	}
	r.asleep(t, interval/2)
	r.calls.reset()
	began := time.Now()
	wait(t, "five looks", func() bool { return r.calls.total() >= 5 })
	require.GreaterOrEqual(t, time.Since(began), 4*interval/2, "looks at an idle queue are half an interval apart at least")
}

// What this process sends is picked up at once, however idle the queue is and however it was sent.
func TestSendWakesReceiversOfTheProcess(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(ctx context.Context, q *Queue, m backend.Outgoing) error{
		"send": func(ctx context.Context, q *Queue, m backend.Outgoing) error {
			return q.Send(ctx, []backend.Outgoing{m})
		},
		"send or ignore": func(ctx context.Context, q *Queue, m backend.Outgoing) error {
			_, err := q.SendOrIgnore(ctx, []backend.Outgoing{m})
			return err
		},
		"in a transaction of the library": func(ctx context.Context, q *Queue, m backend.Outgoing) error {
			return q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error { return tx.Send(ctx, m) })
		},
		"by a mutation": func(ctx context.Context, q *Queue, m backend.Outgoing) error {
			mutation, err := q.SendMutation(m)
			if err != nil {
				return err
			}
			_, err = q.client.Apply(ctx, []*spanner.Mutation{mutation})
			return err
		},
		"by a statement": func(ctx context.Context, q *Queue, m backend.Outgoing) error {
			stmt, err := q.SendStatement(m)
			if err != nil {
				return err
			}
			_, err = q.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, stmt)
				return err
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain())
			r := w.receive(Options{LeaseLength: long, PollInterval: time.Hour})
			sender := w.bare(Options{}) // another Queue value, and another client
			r.asleep(t, time.Second)
			require.NoError(t, send(t.Context(), sender, message("m1")))
			r.next(t) // long before the poll interval, an hour, is over

			// A message for later is expected, not polled for. Nor is one that was due long ago overlooked.
			now, err := sender.ServerTime(t.Context())
			require.NoError(t, err)
			m := message("m2")
			m.DeliverTime = now.Add(300 * time.Millisecond)
			sent := time.Now()
			require.NoError(t, send(t.Context(), sender, m))
			m.Key, m.DeliverTime = spanner.Key{"m3"}, now.Add(-24*time.Hour)
			require.NoError(t, send(t.Context(), sender, m))
			require.Equal(t, "m3", r.next(t).Key[0])
			got := r.next(t)
			require.Equal(t, "m2", got.Key[0])
			require.GreaterOrEqual(t, got.at.Sub(sent), 290*time.Millisecond)
		})
	}
}

// The end of a lease, a release, and a due time that lies ahead are known to a receiver that has looked.
func TestReceiverWaitsForTheNextMessage(t *testing.T) {
	t.Parallel()
	for _, s := range []int{0, 8} {
		table := plain()
		table.Shards = s
		w := newWorld(t, table)
		other := w.bare(Options{LeaseLength: 500 * time.Millisecond})
		w.send(other, "m1")
		w.take(other, 1)
		r := w.receive(Options{LeaseLength: long, PollInterval: time.Hour})
		got := r.next(t) // long before the poll interval is over
		require.Equal(t, 1, got.Record.Starts)

		r.asleep(t, time.Second)
		require.NoError(t, r.queue.Release(t.Context(), []backend.Delivery{got.Delivery}))
		require.Equal(t, 1, r.next(t).Record.Starts)
	}
}

// F16: never early, by the database's clock.
func TestNothingIsReceivedBeforeItIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	now, err := q.ServerTime(t.Context())
	require.NoError(t, err)
	var out []backend.Outgoing
	for i, id := range ids(40) {
		m := message(id)
		m.DeliverTime = now.Add(200*time.Millisecond + time.Duration(i)*7*time.Millisecond + 123456789)
		out = append(out, m)
	}
	require.NoError(t, q.Send(t.Context(), out))
	var got []backend.Delivery
	for len(got) < len(out) {
		seen, err := q.look(t.Context(), 100, false)
		require.NoError(t, err)
		// A query's clock shows that what the look took for past was past.
		now, err := w.bare(Options{}).ServerTime(t.Context())
		require.NoError(t, err)
		require.False(t, seen.past.After(now))
		for _, c := range seen.due {
			require.False(t, c.visible.After(seen.past))
		}
		if len(got)+len(seen.due) < len(out) {
			require.True(t, seen.next.After(seen.past), "when the next one comes is known")
			require.True(t, seen.next.Equal(out[len(got)+len(seen.due)].DeliverTime))
		}
		if len(seen.due) == 0 {
			continue
		}
		c, err := q.claim(t.Context(), seen.due, seen.past)
		require.NoError(t, err)
		got = append(got, c.granted...)
	}
	for i, d := range got {
		require.Equal(t, out[i].Key, d.Key)
		require.True(t, d.DeliverTime.Equal(out[i].DeliverTime), "to the nanosecond")
	}
}

func TestReceiveEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	began := time.Now()
	for _, err := range q.Receive(t.Context(), backend.ReceiveRequest{MaxDuration: 300 * time.Millisecond}) {
		t.Fatalf("an empty queue yields nothing, and no error at the end: %v", err)
	}
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	process.mu.Lock()
	require.Empty(t, process.sleepers[q.name], "nobody is woken who does not receive any more")
	process.mu.Unlock()

	missing := plain()
	missing.Queue.Name = "Nowhere"
	q, err := New(w.db.Bare(t), missing, Options{})
	require.NoError(t, err)
	yielded := 0
	for _, err := range q.Receive(t.Context(), backend.ReceiveRequest{MaxDuration: patience}) {
		yielded++
		require.Error(t, err)
		require.ErrorContains(t, err, "Nowhere")
	}
	require.Equal(t, 1, yielded)
}
