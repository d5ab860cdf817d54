package queuetest_test

import (
	"context"
	"errors"
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

func TestCommitFaults(t *testing.T) {
	t.Parallel()
	lost := queuetest.Code(codes.Unavailable)
	for name, c := range map[string]struct {
		fault  queuetest.Fault
		runs   int
		err    error
		landed bool
		takes  time.Duration
	}{
		"none":                  {queuetest.Fault{}, 1, nil, true, 0},
		"refused":               {queuetest.Fault{Err: lost}, 1, lost, false, 0},
		"landed and lost":       {queuetest.Fault{Err: lost, Landed: true}, 1, lost, true, 0},
		"slow both ways":        {queuetest.Fault{Before: time.Second, After: 2 * time.Second}, 1, nil, true, 3 * time.Second},
		"never forwarded":       {queuetest.Fault{Stall: true}, 1, context.DeadlineExceeded, false, time.Minute},
		"never answered":        {queuetest.Fault{Stall: true, Landed: true}, 1, context.DeadlineExceeded, true, time.Minute},
		"too late to forward":   {queuetest.Fault{Before: time.Hour}, 1, context.DeadlineExceeded, false, time.Minute},
		"run again after it":    {queuetest.Fault{Rerun: true}, 2, queue.ErrNotHeld, true, 0},
		"landing when all left": {queuetest.Fault{Err: lost, Late: time.Second}, 1, lost, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := queuetest.New(mails, queuetest.Options{})
				send(t, m, out(1, "work"))
				message := peek(t, m)[0]
				m.Nth(queuetest.OpCommit, 1, c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				runs, begun := 0, time.Now()
				err := run(ctx, m, func(ctx context.Context, tx backend.Tx) error {
					runs++
					return tx.Ack(ctx, message.Delivery())
				})
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.runs, runs)
				require.Equal(t, c.takes, time.Since(begun))
				if c.landed {
					queuetest.RequireEmpty(t, m.Queue())
				} else {
					queuetest.RequireKeys(t, m.Queue(), spanner.Key{"c", 1})
				}
				if c.fault.Late > 0 {
					// Whoever comes meanwhile waits for it, and finds the message gone.
					require.ErrorIs(t, ack(t.Context(), m, message), queue.ErrNotHeld)
					require.Equal(t, c.fault.Late, time.Since(begun))
				}
			})
		})
	}
}

func TestRenewalFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{})
		send(t, m, out(1, "work"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		message := <-stream(ctx, m, queue.ReceiveOptions{})
		lost := errors.New("lost")

		m.SetFault(queuetest.OpRenew, func(n int) queuetest.Fault {
			if n == 1 {
				return queuetest.Fault{Err: lost}
			}
			return queuetest.Fault{Err: lost, Landed: true}
		})
		for range 2 {
			_, err := m.Queue().Renew(t.Context(), message.Lease)
			require.ErrorIs(t, err, lost)
		}
		m.SetFault(queuetest.OpRenew, nil)
		answers, err := m.Queue().Renew(t.Context(), message.Lease)
		require.NoError(t, err)
		require.False(t, answers[0].Renewed, "the second one landed, and nobody knows the token")
		require.Equal(t, 1, m.Counts().Renewed)
	})
}

func TestStreamFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{})
		send(t, m, out(1, ""), out(2, ""), out(3, ""))
		broken := queuetest.Code(codes.Unavailable)
		receive := func(ctx context.Context) (rows int, last error) {
			for _, err := range m.Queue().Receive(ctx, queue.ReceiveOptions{MaxDuration: time.Second}) {
				if err != nil {
					return rows, err
				}
				rows++
			}
			return rows, nil
		}
		m.Nth(queuetest.OpReceive, 1, queuetest.Fault{Err: broken})
		rows, err := receive(t.Context())
		require.Zero(t, rows)
		require.ErrorIs(t, err, broken)

		m.Nth(queuetest.OpRow, 2, queuetest.Fault{Err: broken})
		rows, err = receive(t.Context())
		require.Equal(t, 1, rows)
		require.ErrorIs(t, err, broken)

		m.Nth(queuetest.OpRow, 1, queuetest.Fault{Stall: true})
		time.Sleep(length)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		rows, err = receive(ctx)
		require.Zero(t, rows)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begun), "a stalled stream does not end by itself")

		m.Nth(queuetest.OpRow, 1, queuetest.Fault{Before: length + 1})
		for message, err := range m.Queue().Receive(t.Context(), queue.ReceiveOptions{}) {
			require.NoError(t, err)
			answers, err := m.Queue().Renew(t.Context(), message.Lease)
			require.NoError(t, err)
			require.False(t, answers[0].Renewed, "the row was on its way for longer than its lease")
			break
		}
	})
}
