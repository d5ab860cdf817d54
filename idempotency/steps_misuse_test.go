package idempotency_test

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

func TestStepsMisuseIsRefused(t *testing.T) {
	t.Parallel()
	one := func(context.Context, *spanner.ReadWriteTransaction) (int, error) { return 1, nil }
	done := func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, nil
	}
	for name, f := range map[string]func(context.Context, *idempotency.Run) error{
		"no Complete": func(context.Context, *idempotency.Run) error { return nil },
		"empty name": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "", one)
			return err
		},
		"long name": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, strings.Repeat("x", 129), one)
			return err
		},
		"one name twice": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "a", one)
			require.NoError(t, err)
			_, err = idempotency.Local(ctx, run, "a", one)
			return err
		},
		"a step in a step": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "a", func(ctx context.Context, _ *spanner.ReadWriteTransaction) (int, error) {
				return idempotency.Local(ctx, run, "b", one)
			})
			return err
		},
		"a step after Complete": func(ctx context.Context, run *idempotency.Run) error {
			require.NoError(t, run.Complete(ctx, done))
			_, err := idempotency.Local(ctx, run, "a", one)
			return err
		},
		"Complete twice": func(ctx context.Context, run *idempotency.Run) error {
			require.NoError(t, run.Complete(ctx, done))
			return run.Complete(ctx, done)
		},
		"no function in Local": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local[int](ctx, run, "a", nil)
			return err
		},
		"no function in Complete": func(ctx context.Context, run *idempotency.Run) error { return run.Complete(ctx, nil) },
		"no Call": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Outside[int]{AtMostOnce: true}.Step(ctx, run, "a")
			return err
		},
		"a result that cannot be written": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "a", func(context.Context, *spanner.ReadWriteTransaction) (chan int, error) { return nil, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			_, err := b.store.Steps(t.Context(), ride, payload("p"), f)
			require.ErrorIs(t, err, idempotency.ErrInvalid)
			require.NotErrorIs(t, err, idempotency.ErrUncertain)
		})
	}
}

func TestStepsOfAnotherReleaseOfTheCode(t *testing.T) {
	t.Parallel()
	_, p := newTrip(t, idempotency.Config{})
	p.crash = "charge"
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, errCrash)

	for name, f := range map[string]func(context.Context, *idempotency.Run) error{
		"another name": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "journey", func(context.Context, *spanner.ReadWriteTransaction) (int, error) { return 1, nil })
			return err
		},
		"another kind": func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Outside[string]{}.Step(ctx, run, "ride")
			return err
		},
		"fewer steps": func(ctx context.Context, run *idempotency.Run) error {
			return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{}, nil
			})
		},
	} {
		_, err := p.store.Steps(t.Context(), ride, payload("zurich to bern"), f)
		require.ErrorIs(t, err, idempotency.ErrDiverged, name)
	}
	p.crash = ""
	_, err = p.order(t.Context())
	require.NoError(t, err, "the right code still goes on")
}

func TestStepsPanicGivesTheOperationUp(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"function", "local", "outside"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			require.PanicsWithValue(t, "boom", func() {
				_, _ = b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
					switch where {
					case "local":
						_, _ = idempotency.Local(ctx, run, "x", func(context.Context, *spanner.ReadWriteTransaction) (int, error) { panic("boom") })
					case "outside":
						_, _ = idempotency.Outside[int]{Call: func(context.Context, string) (int, error) { panic("boom") }}.Step(ctx, run, "x")
					}
					panic("boom")
				})
			})
			_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					return idempotency.Result{}, nil
				})
			})
			require.NoError(t, err, "the next call had to wait")
		})
	}
}
