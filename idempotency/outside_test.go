package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

var errTimeout = errors.New("no answer from the gateway")

// loseAnswer calls the gateway and loses what it said.
func loseAnswer(g *gateway) func(context.Context, string) (charge, error) {
	return func(ctx context.Context, key string) (charge, error) {
		_, _ = g.charge(ctx, key)
		return charge{}, errTimeout
	}
}

func TestOutsideCarriesOneKeyInEveryRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	var keys []string
	call := func(op idempotency.Operation) {
		_, err := b.store.Steps(t.Context(), op, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Outside[int]{Call: func(_ context.Context, key string) (int, error) {
				keys = append(keys, key)
				return 0, errTimeout
			}}.Step(ctx, run, "charge")
			return err
		})
		require.ErrorIs(t, err, errTimeout)
	}
	call(ride)
	call(ride)
	other := ride
	other.Scope = "tenant-2"
	call(other)
	require.Equal(t, keys[0], keys[1])
	require.NotEqual(t, keys[0], keys[2])
	require.Len(t, keys[0], 64)
}

// A passing error does not stop the operation: the call is made again with the
// same key, and a side that knows keys makes one charge of two calls.
func TestOutsideErrorMeansTheCallMayBeMadeAgain(t *testing.T) {
	t.Parallel()
	_, p := newTrip(t, idempotency.Config{})
	p.outside.Call = loseAnswer(p.gateway)
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, errTimeout)
	p.outside.Call = nil
	receipt, err := p.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ride-1 ch_a", string(receipt.Body))
	calls, charges := p.gateway.counts()
	require.Equal(t, 2, calls)
	require.Equal(t, 1, charges)
}

// unsure brings a trip to where its charge took effect and nobody knows.
func unsure(t *testing.T, atMostOnce bool) (*bench, *trip) {
	t.Helper()
	b, p := newTrip(t, idempotency.Config{})
	p.gateway.forgetful = true // a second call would be a second charge
	p.outside.AtMostOnce = atMostOnce
	p.outside.Call = loseAnswer(p.gateway)
	if !atMostOnce {
		lose := p.outside.Call
		p.outside.Call = func(ctx context.Context, key string) (charge, error) {
			c, err := lose(ctx, key)
			return c, idempotency.Uncertain(err)
		}
	}
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, idempotency.ErrUncertain)
	require.ErrorIs(t, err, errTimeout)
	p.outside.Call = nil
	return b, p
}

func TestOutsideUncertainStaysSoWithoutReconcile(t *testing.T) {
	t.Parallel()
	for _, atMostOnce := range []bool{false, true} {
		b, p := unsure(t, atMostOnce)
		for range 2 {
			_, err := p.order(t.Context())
			require.ErrorIs(t, err, idempotency.ErrUncertain)
			require.ErrorContains(t, err, "no Reconcile")
			require.Empty(t, p.ran)
		}
		_, err := b.store.Lookup(t.Context(), ride)
		require.ErrorIs(t, err, idempotency.ErrUncertain)
		_, err = b.store.Do(t.Context(), ride, payload("zurich to bern"), func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			t.Error("Do ran over an uncertain call")
			return idempotency.Result{}, nil
		})
		require.ErrorIs(t, err, idempotency.ErrUncertain)
		_, charges := p.gateway.counts()
		require.Equal(t, 1, charges)
	}
}

func TestOutsideReconcileMovesItOn(t *testing.T) {
	t.Parallel()
	for _, atMostOnce := range []bool{false, true} {
		_, p := unsure(t, atMostOnce)
		// Still not known.
		p.outside.Reconcile = func(context.Context, string) (charge, bool, error) { return charge{}, false, errTimeout }
		_, err := p.order(t.Context())
		require.ErrorIs(t, err, idempotency.ErrUncertain)
		require.ErrorIs(t, err, errTimeout)
		require.Empty(t, p.ran)
		// Known: it happened.
		p.outside.Reconcile = p.gateway.find
		receipt, err := p.order(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"complete"}, p.ran, "the call was made again")
		require.Equal(t, "ride-1 ch_a", string(receipt.Body))
		calls, charges := p.gateway.counts()
		require.Equal(t, 1, calls)
		require.Equal(t, 1, charges)
	}
}

func TestOutsideReconcileFindsThatNothingHappened(t *testing.T) {
	t.Parallel()
	_, p := newTrip(t, idempotency.Config{})
	p.outside.AtMostOnce = true
	p.outside.Call = func(context.Context, string) (charge, error) { return charge{}, errTimeout }
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, idempotency.ErrUncertain)
	p.outside.Call = nil
	p.outside.Reconcile = p.gateway.find
	_, err = p.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"charge", "complete"}, p.ran)
}

// The process dies in the middle of a call. With AtMostOnce the intent is on
// record before it, so that the next owner asks and does not call.
func TestOutsideAtMostOnceSurvivesACrashInTheCall(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	p.gateway.forgetful = true
	p.outside.AtMostOnce = true
	entered, die := make(chan struct{}), make(chan struct{})
	p.outside.Call = func(ctx context.Context, key string) (charge, error) {
		c, err := p.gateway.charge(ctx, key)
		close(entered)
		<-die
		return c, err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.order(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	<-entered
	b.age(t, ride, time.Minute) // the owner is as good as dead

	next := &trip{store: b.store, gateway: p.gateway}
	next.outside = idempotency.Outside[charge]{AtMostOnce: true, Reconcile: p.gateway.find}
	receipt, err := next.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"complete"}, next.ran)
	require.Equal(t, "ride-1 ch_a", string(receipt.Body))

	close(die)
	require.ErrorIs(t, <-ended, idempotency.ErrNotOwner)
	_, charges := p.gateway.counts()
	require.Equal(t, 1, charges)
}

// The caller goes away while the call is under way: what the call returns is a
// fact and is kept.
func TestOutsideResultIsKeptWhenTheCallerHasGone(t *testing.T) {
	t.Parallel()
	_, p := newTrip(t, idempotency.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("client closed request")
	p.outside.Call = func(ctx context.Context, key string) (charge, error) {
		c, err := p.gateway.charge(ctx, key)
		cancel(gone)
		return c, err
	}
	_, err := p.order(ctx)
	require.ErrorIs(t, err, gone)
	p.outside.Call = nil
	_, err = p.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"complete"}, p.ran)
	calls, _ := p.gateway.counts()
	require.Equal(t, 1, calls)
}

func TestStepResultThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{MaxBody: 10, DropLargeBodies: true})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		_, err := idempotency.Local(ctx, run, "x", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (string, error) {
			return "12345678901", addPoint(ctx, tx)
		})
		return err
	})
	require.ErrorIs(t, err, idempotency.ErrTooLarge)
	require.Zero(t, b.points(t))
}
