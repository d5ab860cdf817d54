package queuetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func begin(t *testing.T, m *queuetest.Memory, d backend.Delivery) backend.Record {
	t.Helper()
	before, err := m.Begin(t.Context(), []backend.Delivery{d})
	require.NoError(t, err)
	require.Len(t, before, 1)
	return before[0]
}

// A record counts for one delivery: it is carried by whoever sends the message again, and by nobody else.
func TestLedger(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	require.NoError(t, m.CheckLedger(t.Context()))
	send(t, m, out(1, "work"))
	d := peek(t, m)[0].Delivery()
	require.Zero(t, begin(t, m, d))
	once := begin(t, m, d)
	require.Equal(t, 1, once.Starts)
	require.False(t, once.First.IsZero())
	require.NoError(t, m.TakeBack(t.Context(), d))
	require.Equal(t, 1, begin(t, m, d).Starts, "two began, one was taken back")

	resent := backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: d.DeliverTime.Add(time.Hour)}
	kept := backend.Record{Failures: 3, First: once.First}
	require.NoError(t, run(t.Context(), m, func(ctx context.Context, tx backend.Tx) error {
		return errors.Join(tx.Ack(ctx, d), tx.Send(ctx, resent), tx.(backend.LedgerTx).Keep(ctx, resent, kept))
	}))
	require.Zero(t, begin(t, m, d), "the old delivery's holder neither sees nor changes the new one's record")
	again := peek(t, m)[0].Delivery()
	require.Equal(t, kept, begin(t, m, again))

	buried := backend.DeadLetter{Reason: "attempts", Error: "no", Attempts: 4, Handler: "mail"}
	fail := errors.New("not yet")
	bury := func(ctx context.Context, tx backend.Tx) error {
		return errors.Join(tx.Ack(ctx, again), tx.(backend.LedgerTx).Bury(ctx, again, buried), fail)
	}
	require.ErrorIs(t, run(t.Context(), m, bury), fail)
	require.Empty(t, m.Dead())
	require.Equal(t, 1, begin(t, m, again).Starts)
	fail = nil
	require.NoError(t, run(t.Context(), m, bury))
	queuetest.RequireEmpty(t, m.Queue())
	dead := m.Dead()
	require.Len(t, dead, 1)
	require.Equal(t, again.Key, dead[0].Message.Key)
	require.Equal(t, "work", string(dead[0].Message.Payload))
	require.Equal(t, 4, dead[0].Attempts)
	require.WithinDuration(t, m.Now(), dead[0].At, time.Minute)

	send(t, m, out(1, "another message of the same key"))
	require.Zero(t, begin(t, m, peek(t, m)[0].Delivery()), "the record is gone with the message")
}

// The commit of a count lands and the function runs again: it is counted once.
func TestStartsAreCountedOnce(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	send(t, m, out(1, "work"))
	d := peek(t, m)[0].Delivery()
	m.Nth(queuetest.OpCommit, 1, queuetest.Fault{Rerun: true})
	require.Zero(t, begin(t, m, d).Starts)
	require.Equal(t, 1, begin(t, m, d).Starts)
	m.Nth(queuetest.OpCommit, 1, queuetest.Fault{Err: queuetest.Code(codes.Unavailable)})
	_, err := m.Begin(t.Context(), []backend.Delivery{d})
	require.Error(t, err)
	require.Equal(t, 2, begin(t, m, d).Starts, "nor was one that failed")
}
