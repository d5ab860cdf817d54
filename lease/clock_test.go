package lease

import (
	"context"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// The database's clock is half a minute off this machine's, or steps while the work goes on: the message is worked on
// once, and a delayed one comes by the database's clock, never early.
func TestClocksApart(t *testing.T) {
	for name, offsets := range map[string][2]time.Duration{
		"together":         {0, 0},
		"ours is ahead":    {-30 * time.Second, -30 * time.Second},
		"ours is behind":   {30 * time.Second, 30 * time.Second},
		"a year apart":     {365 * 24 * time.Hour, 365 * 24 * time.Hour},
		"steps back":       {30 * time.Second, -30 * time.Second},
		"steps ahead":      {-30 * time.Second, 30 * time.Second},
		"steps a little":   {0, leaseLength / 2},
		"steps a bit back": {0, -leaseLength / 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := queuetest.New(jobs, queuetest.Options{LeaseLength: leaseLength, Offset: offsets[0]})
				send(t, m.Queue(), 1)
				a := start(t, m.Queue(), Config{})
				h := a.next(time.Second)
				require.NoError(t, h.Confirm(t.Context()))
				b := start(t, m.Queue(), Config{})
				other := make(chan struct{})
				go func() {
					defer close(other)
					b.none(3 * leaseLength)
				}()
				time.AfterFunc(leaseLength, func() { m.SetOffset(offsets[1]) })
				require.NoError(t, work(t.Context(), h, 3*leaseLength))
				<-other
				require.Zero(t, m.Counts().LeasesEnded)

				// Sent again for 5 s later, to the nanosecond.
				now, err := m.Queue().ServerTime(t.Context())
				require.NoError(t, err)
				require.False(t, now.Before(m.Now()))
				due := now.Add(5 * time.Second).Truncate(time.Second).Add(time.Second + 123456789)
				d := h.Message().Delivery()
				require.NoError(t, m.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
					if err := tx.Ack(ctx, d); err != nil {
						return err
					}
					return tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: due})
				}))
				h.Release()
				again := b.next(10 * time.Second)
				require.False(t, m.Now().Before(due), "received %v early", due.Sub(m.Now()))
				require.Less(t, m.Now().Sub(due), 10*time.Millisecond)
				require.True(t, again.Message().DeliverTime.Equal(due), "the time reads back as it was given")
				require.Equal(t, "work", string(again.Message().Payload))
				again.Release()
				a.end()
				b.end()
			})
		})
	}
}

// The work of a deferral ends before the message comes due, whatever the clocks show and however slow the calls are.
func TestDeferralByServerTime(t *testing.T) {
	for _, offset := range []time.Duration{0, 30 * time.Second, -30 * time.Second} {
		for _, slow := range []time.Duration{0, 100 * time.Millisecond} {
			t.Run("", func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					const longest = 20 * time.Second
					m := queuetest.New(jobs, queuetest.Options{LeaseLength: leaseLength, Offset: offset})
					m.SetFault(queuetest.OpServerTime, queuetest.Always(queuetest.Fault{Before: slow, After: slow}))
					send(t, m.Queue(), 1)
					r := start(t, m.Queue(), Config{})
					h := r.next(time.Second)
					begun := time.Now()
					require.NoError(t, h.Defer(t.Context(), longest))
					ctx, cancel := h.Context(t.Context())
					defer cancel()
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), ErrDeferralOver)
					require.Equal(t, longest, time.Since(begun))
					due := h.Message().DeliverTime
					require.True(t, due.After(m.Now()), "the message came due before the work ended")
					require.Less(t, due.Sub(m.Now()), 200*time.Millisecond+3*slow, "and comes due soon after")
					require.True(t, duetime.Marked(due))
					h.Release()
					again := r.next(2 * time.Second)
					require.False(t, m.Now().Before(due))
					again.Release()
					r.end()
				})
			})
		}
	}
}
