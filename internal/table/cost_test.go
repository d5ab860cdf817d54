package table

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

// fill puts n messages into the table, all due, as senders would have done over time.
func (w *world) fill(q *Queue, n int) {
	w.t.Helper()
	now, err := q.ServerTime(w.t.Context())
	require.NoError(w.t, err)
	for from := 0; from < n; from += 500 {
		var out []backend.Outgoing
		for i := from; i < min(from+500, n); i++ {
			m := message(fmt.Sprintf("%07d", i*7919%10_000_019))
			m.DeliverTime = now.Add(-time.Hour + time.Duration(i)*time.Microsecond)
			out = append(out, m)
		}
		require.NoError(w.t, q.Send(w.t.Context(), out))
	}
}

// drain receives and acknowledges n messages in claims of a batch, one by one or all of a batch together, and returns the
// calls that it took for each message.
func (w *world) drain(n, batch int, together bool) float64 {
	w.t.Helper()
	count := newRPCs()
	q := w.open(w.db.Bare(w.t, count.options()...), Options{LeaseLength: long})
	_, err := q.ServerTime(w.t.Context())
	require.NoError(w.t, err)
	count.reset()
	done := 0
	var held []backend.Delivery
	settle := func() {
		require.NoError(w.t, q.RunTx(w.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
			missing, err := tx.AckAll(ctx, held)
			require.Empty(w.t, missing)
			return err
		}))
		done += len(held)
		held = held[:0]
	}
	for d, err := range q.Receive(w.t.Context(), backend.ReceiveRequest{MaxDuration: time.Hour, MaxBatch: batch}) {
		require.NoError(w.t, err)
		if held = append(held, d); !together || d.LastOfBatch {
			settle()
		}
		if done >= n {
			break
		}
	}
	return float64(count.total()) / float64(n)
}

// What a message costs does not depend on how many wait behind it.
func TestCallsPerMessage(t *testing.T) {
	t.Parallel()
	backlogs := []int{1000, 10_000}
	if os.Getenv("SPANQUEUE_LONG") != "" {
		backlogs = []int{1000, 100_000}
	}
	type cost struct{ single, batched float64 }
	costs := make([]cost, len(backlogs))
	for i, n := range backlogs {
		w := newWorld(t, plain())
		w.fill(w.bare(Options{}), n)
		began := time.Now()
		costs[i] = cost{single: w.drain(200, 20, false), batched: w.drain(500, 50, true)}
		t.Logf("backlog %6d: %.3f calls a message one by one (claims of 20), %.3f in batches of 50; 700 messages took %v",
			n, costs[i].single, costs[i].batched, time.Since(began))
	}
	require.LessOrEqual(t, costs[1].single, 1.2*costs[0].single)
	require.LessOrEqual(t, costs[1].batched, 1.2*costs[0].batched)
	require.LessOrEqual(t, costs[0].single, 2+3.0/20+0.01)
	require.LessOrEqual(t, costs[0].batched, 5.0/50+0.01)
}
