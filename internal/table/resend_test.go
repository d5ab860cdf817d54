package table

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// F16: a resend is one transaction; what the message keeps, it keeps.
func TestF16ResendIsOneCommit(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"before the commit":      fault.Abort(),
		"during it, reply lost":  fault.After(codes.Unknown, "who knows"),
		"client runs it again":   fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
		"right after the commit": fault.DelayReply(50 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain()
			s.Priorities = 3
			w := newWorld(t, s)
			q := w.front(Options{LeaseLength: long})
			m := message("m1")
			m.Priority = 2
			require.NoError(t, q.Send(t.Context(), []backend.Outgoing{m}))
			d := w.take(q, 1)[0]
			now, err := q.ServerTime(t.Context())
			require.NoError(t, err)
			due := now.Add(time.Second)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "resend", Nth: 1, Do: action})
			left := func() {
				r, there := w.find(q, "m1")
				require.True(t, there, "at every moment one is left")
				require.True(t, r.due.Equal(d.DeliverTime) || r.due.Equal(due))
			}
			left()
			err = q.RunTx(t.Context(), backend.TxOptions{Tag: "resend"}, func(ctx context.Context, tx backend.Tx) error {
				if err := tx.Ack(ctx, d); err != nil {
					return err
				}
				return tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: []byte("next"), DeliverTime: due})
			})
			w.applied(h)
			left()
			if err != nil { // the caller does not know: the probe says that it was settled
				p, err := q.Probe(t.Context(), d)
				require.NoError(t, err)
				require.Equal(t, backend.Moved, p)
			}
			require.Empty(t, w.takeNow(q))
			again := w.take(q, 1)[0]
			past, _ := q.clock.past()
			require.False(t, past.Before(due), "received before it was due")
			require.True(t, again.DeliverTime.Equal(due))
			require.Equal(t, "next", string(again.Payload))
			require.Equal(t, 2, again.Priority)
			require.Equal(t, 1, again.Record.Starts, "the history is kept")
		})
	}
}

// F13: the commit of finished work outlives the stop of the receiver.
func TestF13StopDoesNotTouchWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(2)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var held []backend.Delivery
	for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 1}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		held = append(held, d)
		stop()
	}
	require.Len(t, held, 1)
	require.NoError(t, work(t.Context(), q, held[0]))
	require.EqualValues(t, 1, w.effects(q, held[0].Key[0].(string)))
	_, there := w.find(q, held[0].Key[0].(string))
	require.False(t, there)
}

func TestTransactionThatIsHeldByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	d := w.take(q, 1)[0]
	tx, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), q.client)
	require.NoError(t, err)
	require.NoError(t, q.Ack(t.Context(), tx, d))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	_, there := w.find(q, "m1")
	require.False(t, there)
}
