package table

import (
	"context"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

func TestRenewKeepsTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	count := newRPCs()
	q := w.open(w.db.Bare(t, count.options()...), Options{LeaseLength: long})
	w.send(q, ids(50)...)
	ds := w.take(q, 50)
	require.NoError(t, ack(t.Context(), q, ds[7]))
	var tokens []string
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	count.reset()
	past, _ := q.clock.past()
	answers, err := q.Renew(t.Context(), append(tokens, "nonsense", "abc.AAAA"))
	require.NoError(t, err)
	require.Equal(t, 2, count.total(), "one read and one commit for all of them: %v", count)
	require.Len(t, answers, 49)
	for i, d := range ds {
		a, ok := answers[d.Token]
		require.Equal(t, i != 7, ok)
		if !ok {
			continue
		}
		require.Equal(t, d.Token, a.Token)
		require.False(t, a.LeaseEnd.Before(past.Add(long)), "a full lease from the renewal on")
		r, _ := w.find(q, d.Key[0].(string))
		require.True(t, r.visible.Equal(a.LeaseEnd))
		require.True(t, r.due.Equal(d.DeliverTime))
		require.NoError(t, ack(t.Context(), q, d), "an acknowledgement that was under way still holds")
	}
}

// A lease that was renewed is not given to others, for as long as it is renewed.
func TestRenewedLeaseLasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q, other := w.bare(Options{LeaseLength: soon}), w.bare(Options{LeaseLength: soon, PollInterval: 20 * time.Millisecond})
	w.send(q, "m1")
	d := w.take(q, 1)[0]
	received := make(chan backend.Delivery, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		defer close(received)
		for d, err := range other.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience}) {
			if err == nil {
				received <- d
			}
			return
		}
	}()
	began := time.Now()
	ticks := time.NewTicker(soon / 4)
	defer ticks.Stop()
	for time.Since(began) < 3*soon {
		answers, err := q.Renew(t.Context(), []string{d.Token})
		require.NoError(t, err)
		require.Len(t, answers, 1)
		select {
		case <-received:
			t.Fatal("a renewed lease was given away")
		case <-ticks.C:
		}
	}
	ended := time.Now()
	select {
	case got := <-received:
		require.NotEqual(t, d.Token, got.Token)
		require.GreaterOrEqual(t, time.Since(ended), soon/2, "not before its end")
	case <-time.After(patience):
		t.Fatal("a lease that is not renewed any more ends")
	}
}
