package settle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	var p Pauses
	width := firstPause
	for range 20 {
		d := p.next(errors.New("broken"))
		require.Greater(t, d, width/2-1)
		require.LessOrEqual(t, d, width)
		width = min(2*width, widestPause)
	}
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
		var p Pauses
		require.Greater(t, p.next(status.Error(code, "no")), troubledPause/2-1)
		require.Greater(t, p.next(errors.New("broken")), troubledPause-1, "it goes on growing from there")
	}
}

func TestPausesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Pauses
		p.width = widestPause
		begun := time.Now()
		require.True(t, p.Wait(t.Context(), nil, begun.Add(time.Second)), "one more try when the time is over")
		require.Equal(t, time.Second, time.Since(begun))
		require.False(t, p.Wait(t.Context(), nil, begun.Add(time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		require.False(t, p.Wait(ctx, nil, time.Time{}))
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// A database that answers no commit is asked a few times, and not all the time, until ResolveTimeout.
func TestUnknownCommitsAreNotRunAgainHot(t *testing.T) {
	t.Parallel()
	const resolveTimeout = 2 * time.Minute
	lost := func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
		if err := f(ctx, scriptedTx{}); err != nil {
			return err
		}
		return status.Error(codes.ResourceExhausted, "too much to do")
	}
	runs := map[string]func(t *testing.T, q *scripted) (runs int, r Result){
		"one": func(t *testing.T, q *scripted) (int, Result) {
			v := (&Tx{
				Queue: q, Body: func(context.Context, backend.Tx) error { return nil },
				MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: resolveTimeout,
			}).Run(t.Context())
			return v.Runs, v.Result
		},
		"batch": func(t *testing.T, q *scripted) (int, Result) {
			v := (&Batch{
				Queue: q, Deliveries: make([]backend.Delivery, 2), Body: func(context.Context, backend.Tx, []int) error { return nil },
				MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: resolveTimeout,
			}).Run(t.Context())
			return v.Runs, v.Results[0]
		},
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				n, result := run(t, &scripted{runTx: lost, probe: func() (backend.Presence, error) { return backend.Present, nil }})
				require.Equal(t, Unresolved, result)
				require.Equal(t, resolveTimeout, time.Since(begun))
				require.GreaterOrEqual(t, n, int(resolveTimeout/widestPause))
				require.LessOrEqual(t, n, 2*int(resolveTimeout/widestPause)+10)
			})
		})
	}
}
