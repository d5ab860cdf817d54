package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// All that the filter chooses, but for a message that dies again meanwhile: it is left for another time, or there would be
// no end.
func TestRedriveAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	all := names(503) // more than a page
	w.bury(backend.DeadLetter{Reason: "attempts"}, outgoing(all...)...)
	w.bury(backend.DeadLetter{Reason: "handler"}, outgoing("other")...)
	w.send(all[7], all[501])
	require.NoError(t, w.queue.DeadLetters().Discard(t.Context(), spanner.Key{all[0]}, w.letters(queue.DeadLetterFilter{})[0].DeadAt))
	told := make(map[string]error)
	result, err := w.queue.DeadLetters().RedriveAll(t.Context(), queue.DeadLetterFilter{Reason: "attempts"}, queue.BulkOptions{
		Each: func(l *queue.DeadLetter, err error) {
			id := l.Key[0].(string)
			require.NotContains(t, told, id)
			told[id] = err
			if id == all[8] {
				require.NoError(t, w.ack(w.stored(l.Key)))
				w.dead(id)
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, queue.BulkResult{Settled: 500, Kept: 2}, result)
	require.Len(t, told, 502)
	require.ErrorIs(t, told[all[7]], queue.ErrExists)
	require.NoError(t, told[all[8]])
	require.EqualValues(t, 501, w.count())
	require.Equal(t, []string{all[7], all[501], "other", all[8]}, letterIDs(w.letters(queue.DeadLetterFilter{})))
}

func TestRedriveAllOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	result, err := w.queue.DeadLetters().RedriveAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
	require.NoError(t, err)
	require.Zero(t, result)
}

// Two operators redrive all at once: each letter is settled by one of them.
func TestRedriveAllByTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.bury(backend.DeadLetter{Reason: "r"}, outgoing(names(60)...)...)
	results := make([]queue.BulkResult, 2)
	var operators errgroup.Group
	for i := range results {
		operators.Go(func() (err error) {
			results[i], err = w.queue.DeadLetters().RedriveAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
			return err
		})
	}
	require.NoError(t, operators.Wait())
	require.Equal(t, 60, results[0].Settled+results[1].Settled)
	require.Zero(t, results[0].Kept+results[1].Kept)
	require.EqualValues(t, 60, w.count())
}

func TestRedriveAllAtARate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.bury(backend.DeadLetter{Reason: "r"}, outgoing(names(4)...)...)
	began := time.Now()
	result, err := w.queue.DeadLetters().RedriveAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{Rate: 10})
	require.NoError(t, err)
	require.Equal(t, queue.BulkResult{Settled: 4}, result)
	require.GreaterOrEqual(t, time.Since(began), 290*time.Millisecond, "the first goes at once, three wait 100 ms each")

	w.bury(backend.DeadLetter{Reason: "r"}, outgoing("m5", "m6")...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	result, err = w.queue.DeadLetters().RedriveAll(ctx, queue.DeadLetterFilter{}, queue.BulkOptions{Rate: 0.1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, queue.BulkResult{Settled: 1}, result)
}

// What cannot be settled stops the call, which tells how far it came; calling it again goes on.
func TestDiscardAllThatIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.bury(backend.DeadLetter{Reason: "r"}, outgoing(names(5)...)...)
	h := w.fault(fault.Rule{Method: "Commit", Tag: "discard=Tasks", Nth: 3, Do: fault.Before(codes.PermissionDenied, "no DELETE")})
	result, err := w.queue.DeadLetters().DiscardAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
	require.ErrorContains(t, err, "m00002")
	require.Equal(t, queue.BulkResult{Settled: 2}, result)
	require.Equal(t, 1, h.Applied())

	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	result, err = w.queue.DeadLetters().DiscardAll(ctx, queue.DeadLetterFilter{}, queue.BulkOptions{
		Each: func(*queue.DeadLetter, error) { cancel(errors.New("enough")) },
	})
	require.Error(t, err)
	require.Equal(t, queue.BulkResult{Settled: 1}, result)

	result, err = w.queue.DeadLetters().DiscardAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
	require.NoError(t, err)
	require.Equal(t, queue.BulkResult{Settled: 2}, result)
	require.Equal(t, queue.Stats{}, w.stats())
}
