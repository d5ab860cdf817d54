package lease

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A commit of a deferral goes wrong in every way there is; whatever the caller was told, the message is there once.
func TestDeferWithCommitTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		fault queuetest.Fault
		want  error // nil: deferred
	}{
		"landed, answer lost":              {fault: queuetest.Fault{Err: queuetest.Code(codes.Unavailable), Landed: true}},
		"landed, no answer":                {fault: queuetest.Fault{Stall: true, Landed: true}},
		"landed, unknown code":             {fault: queuetest.Fault{Err: queuetest.Code(codes.Unknown), Landed: true}},
		"landed, function run again":       {fault: queuetest.Fault{Rerun: true}},
		"not landed, unavailable":          {fault: queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}},
		"not landed, no answer":            {fault: queuetest.Fault{Stall: true}},
		"not landed, forgotten":            {fault: queuetest.Fault{Err: queuetest.Code(codes.Internal)}},
		"lands after the answer":           {fault: queuetest.Fault{Err: queuetest.Code(codes.DeadlineExceeded), Late: 100 * time.Millisecond}},
		"lands long after the answer":      {fault: queuetest.Fault{Err: queuetest.Code(codes.DeadlineExceeded), Late: leaseLength}},
		"refused for what was written":     {fault: queuetest.Fault{Err: queuetest.Code(codes.FailedPrecondition)}, want: queuetest.Code(codes.FailedPrecondition)},
		"refused, and it is not our right": {fault: queuetest.Fault{Err: queuetest.Code(codes.PermissionDenied)}, want: queuetest.Code(codes.PermissionDenied)},
	} {
		for _, mayLook := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					m := memory(t)
					send(t, m.Queue(), 1)
					r := start(t, m.Queue(), Config{})
					h := r.next(time.Second)
					require.NoError(t, h.Confirm(t.Context()))
					if !mayLook {
						m.SetFault(queuetest.OpProbe, queuetest.Always(queuetest.Fault{Err: queuetest.Code(codes.PermissionDenied)}))
					}
					m.Nth(queuetest.OpCommit, 1, c.fault)
					old := h.Message()
					err := h.Defer(t.Context(), time.Minute)
					if c.want != nil {
						require.ErrorContains(t, err, c.want.Error())
						require.Same(t, old, h.Message())
					} else {
						require.NoError(t, err)
						require.NotSame(t, old, h.Message())
					}
					time.Sleep(2 * leaseLength)
					require.NoError(t, ack(t.Context(), m.Queue(), h))
					h.Release()
					queuetest.RequireEmpty(t, m.Queue())
					r.end()
				})
			})
		}
	}
}

// Somebody else has settled the message: the holder is told, by the error and by its context.
func TestDeferOfWhatIsGone(t *testing.T) {
	for name, fault := range map[string]queuetest.Fault{
		"plainly":             {},
		"after a lost answer": {Err: queuetest.Code(codes.Unavailable)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := memory(t)
				send(t, m.Queue(), 1)
				r := start(t, m.Queue(), Config{})
				h := r.next(time.Second)
				require.NoError(t, h.Confirm(t.Context()))
				ctx, cancel := h.Context(t.Context())
				defer cancel()
				m.SetFault(queuetest.OpCommit, func(n int) queuetest.Fault {
					if n == 2 {
						go func() { _ = ack(context.Background(), m.Queue(), h) }()
						return fault
					}
					return queuetest.Fault{}
				})
				if fault.Err == nil {
					require.NoError(t, ack(t.Context(), m.Queue(), h))
				} else {
					// The probe comes after the other one's commit.
					m.Nth(queuetest.OpProbe, 1, queuetest.Fault{Before: 100 * time.Millisecond})
				}
				err := h.Defer(ctx, time.Minute)
				require.ErrorIs(t, err, queue.ErrNotHeld)
				require.ErrorIs(t, err, ErrLost, "as the context says, so that a handler that returns it is understood")
				require.ErrorIs(t, context.Cause(ctx), ErrLost)
				h.Release()
				r.end()
			})
		})
	}
}

// The caller's context ends while the commit is under way: what became of it is looked up for a moment.
func TestDeferGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		m.Nth(queuetest.OpCommit, 1, queuetest.Fault{After: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		require.NoError(t, h.Defer(ctx, time.Minute), "it has landed, and that was seen")
		require.Less(t, time.Since(begun), time.Second)
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// A question to the database that is never answered is asked again, and not for ever.
func TestDeferWithSilentQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		m.SetFault(queuetest.OpServerTime, queuetest.Always(queuetest.Fault{Stall: true}))
		begun := time.Now()
		require.ErrorIs(t, h.Defer(t.Context(), time.Minute), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(begun), leaseLength*3/4)

		m.Nth(queuetest.OpServerTime, 1, queuetest.Fault{Stall: true})
		m.Nth(queuetest.OpProbe, 1, queuetest.Fault{Stall: true})
		m.Nth(queuetest.OpCommit, 1, queuetest.Fault{Rerun: true})
		require.NoError(t, h.Defer(t.Context(), time.Minute))
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// It is learned so late that the commit of a deferral has landed, that the message has come due and is here again: the
// first holder's time is over, and the second one is kept.
func TestDeferLearnedLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		m.Nth(queuetest.OpCommit, 1, queuetest.Fault{Err: queuetest.Code(codes.Unavailable), Landed: true})
		m.Nth(queuetest.OpProbe, 1, queuetest.Fault{Before: 3 * time.Second})
		deferred := make(chan error, 1)
		go func() { deferred <- h.Defer(t.Context(), 500*time.Millisecond) }()
		again := r.next(2 * time.Second)
		require.Error(t, <-deferred)
		require.Error(t, ctx.Err())
		require.True(t, again.Message().DeliverTime.Equal(h.Message().DeliverTime))
		h.Release()
		time.Sleep(5 * leaseLength)
		require.Zero(t, m.Counts().LeasesEnded, "the second holder's lease is kept")
		require.NoError(t, again.Confirm(t.Context()))
		require.NoError(t, ack(t.Context(), m.Queue(), again))
		again.Release()
		r.end()
	})
}

// What becomes of the commit cannot be learned: the error says so, and the guard decides later.
func TestDeferUnresolved(t *testing.T) {
	for _, landed := range []bool{true, false} {
		t.Run("", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := memory(t)
				send(t, m.Queue(), 1)
				r := start(t, m.Queue(), Config{})
				h := r.next(time.Second)
				m.Nth(queuetest.OpCommit, 1, queuetest.Fault{Err: queuetest.Code(codes.Unavailable), Landed: landed})
				m.SetFault(queuetest.OpProbe, queuetest.Always(queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}))
				err := h.Defer(t.Context(), time.Hour)
				require.ErrorContains(t, err, "could not be learned")
				require.Equal(t, codes.Unavailable, spanner.ErrCode(err))
				m.SetFault(queuetest.OpProbe, nil)
				if landed {
					require.ErrorIs(t, ack(t.Context(), m.Queue(), h), queue.ErrNotHeld)
				} else {
					require.NoError(t, ack(t.Context(), m.Queue(), h))
				}
				h.Release()
				r.end()
			})
		})
	}
}
