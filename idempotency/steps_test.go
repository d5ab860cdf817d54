package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

// rides is the business table of the tests in steps: its unique key is the last
// guard against a second ride of one request.
const rides = `CREATE TABLE Rides (Request STRING(64) NOT NULL, Id STRING(64) NOT NULL, ChargeId STRING(64)) PRIMARY KEY (Request)`

var ride = idempotency.Operation{Scope: "tenant-1", Name: "order ride", Key: "req-1"}

var errCrash = errors.New("crash")

// trip is the operation of the tests: a ride row, a charge, the end. crash, if
// set, names the point after which it fails.
type trip struct {
	store   *idempotency.Store
	gateway *gateway
	crash   string
	outside idempotency.Outside[charge]
	ran     []string // the steps whose code ran
}

func (p *trip) order(ctx context.Context) (idempotency.Receipt, error) {
	p.ran = nil
	return p.store.Steps(ctx, ride, payload("zurich to bern"), p.steps)
}

func (p *trip) steps(ctx context.Context, run *idempotency.Run) error {
	if p.crash == "begin" {
		return errCrash
	}
	id, err := idempotency.Local(ctx, run, "ride", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (string, error) {
		p.ran = append(p.ran, "ride")
		return "ride-1", tx.BufferWrite([]*spanner.Mutation{
			spanner.Insert("Rides", []string{"Request", "Id"}, []any{ride.Key, "ride-1"}),
		})
	})
	if err != nil {
		return err
	}
	if p.crash == "ride" {
		return errCrash
	}
	o := p.outside
	if o.Call == nil {
		o.Call = p.gateway.charge
	}
	call := o.Call
	o.Call = func(ctx context.Context, key string) (charge, error) {
		p.ran = append(p.ran, "charge")
		return call(ctx, key)
	}
	c, err := o.Step(ctx, run, "charge")
	if err != nil {
		return err
	}
	if p.crash == "charge" {
		return errCrash
	}
	return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		p.ran = append(p.ran, "complete")
		err := tx.BufferWrite([]*spanner.Mutation{
			spanner.Update("Rides", []string{"Request", "ChargeId"}, []any{ride.Key, c.ID}),
		})
		return idempotency.Result{Code: 201, Body: []byte(id + " " + c.ID), ResourceID: id}, err
	})
}

func newTrip(t *testing.T, cfg idempotency.Config) (*bench, *trip) {
	t.Helper()
	b := newBench(t, cfg, rides)
	return b, &trip{store: b.store, gateway: &gateway{}}
}

func (b *bench) rideRow(t *testing.T) (id, chargeID string) {
	t.Helper()
	row, err := b.client.Single().ReadRow(t.Context(), "Rides", spanner.Key{ride.Key}, []string{"Id", "ChargeId"})
	if errors.Is(err, spanner.ErrRowNotFound) {
		return "", ""
	}
	require.NoError(t, err)
	var c spanner.NullString
	require.NoError(t, row.Columns(&id, &c))
	return id, c.StringVal
}

func TestStepsRunOnceAndReplay(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	first, err := p.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ride", "charge", "complete"}, p.ran)
	require.Equal(t, "ride-1 ch_a", string(first.Body))
	require.False(t, first.Replayed)
	require.False(t, first.Completed.IsZero())

	second, err := p.order(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.ran)
	require.True(t, second.Replayed)
	second.Replayed = false
	require.Equal(t, first, second)
	id, chargeID := b.rideRow(t)
	require.Equal(t, "ride-1", id)
	require.Equal(t, "ch_a", chargeID)
}

// A passing error at each point: the next call goes on where this one stopped,
// at once and with no second call.
func TestStepsGoOnFromTheRecoveryPoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		crash string
		rest  []string
	}{
		{"begin", []string{"ride", "charge", "complete"}},
		{"ride", []string{"charge", "complete"}},
		{"charge", []string{"complete"}},
	} {
		t.Run(c.crash, func(t *testing.T) {
			t.Parallel()
			_, p := newTrip(t, idempotency.Config{})
			p.crash = c.crash
			_, err := p.order(t.Context())
			require.ErrorIs(t, err, errCrash)
			p.crash = ""
			receipt, err := p.order(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.rest, p.ran)
			require.Equal(t, "ride-1 ch_a", string(receipt.Body))
			calls, charges := p.gateway.counts()
			require.Equal(t, 1, calls)
			require.Equal(t, 1, charges)
		})
	}
}

func TestStepsReleaseLeavesNoRecordWhenNothingWasDone(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	p.crash = "begin"
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, errCrash)
	require.Zero(t, b.records(t), "a refusal before execution leaves no record")

	_, err = b.store.Steps(t.Context(), ride, payload("another request"), func(context.Context, *idempotency.Run) error { return errCrash })
	require.ErrorIs(t, err, errCrash, "the key was free")
}

// Once something may have been done under the key, it stays bound to its
// request, also if the thing done was only a call that failed.
func TestStepsReleaseKeepsFingerprintAndPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"ride", "call"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				if point == "ride" {
					_, err := idempotency.Local(ctx, run, "ride", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
						return 1, addPoint(ctx, tx)
					})
					require.NoError(t, err)
					return errCrash
				}
				_, err := idempotency.Outside[int]{Call: func(context.Context, string) (int, error) { return 0, errCrash }}.Step(ctx, run, "call")
				return err
			})
			require.ErrorIs(t, err, errCrash)
			require.EqualValues(t, 1, b.records(t))

			_, err = b.store.Lookup(t.Context(), ride)
			require.ErrorIs(t, err, idempotency.ErrInProgress)
			after, ok := idempotency.RetryAfter(err)
			require.True(t, ok)
			require.Zero(t, after, "nobody is at work")

			_, err = b.store.Steps(t.Context(), ride, payload("other"), func(context.Context, *idempotency.Run) error {
				t.Error("ran for another request")
				return nil
			})
			require.ErrorIs(t, err, idempotency.ErrMismatch)
		})
	}
}

func TestStepsRefusalIsKept(t *testing.T) {
	t.Parallel()
	declined := idempotency.Refuse(idempotency.Result{Code: 402, Body: []byte("card declined")})
	for _, from := range []string{"local", "outside", "complete", "function"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			order := func() (idempotency.Receipt, error) {
				return b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
					effect := func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
						if err := addPoint(ctx, tx); err != nil {
							return err
						}
						return fmt.Errorf("wrapped: %w", declined)
					}
					switch from {
					case "local":
						_, err := idempotency.Local(ctx, run, "x", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) { return 0, effect(ctx, tx) })
						return err
					case "outside":
						_, err := idempotency.Outside[int]{AtMostOnce: true, Call: func(context.Context, string) (int, error) { return 0, declined }}.Step(ctx, run, "x")
						return err
					case "complete":
						return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
							return idempotency.Result{}, effect(ctx, tx)
						})
					default:
						return declined
					}
				})
			}
			for _, replayed := range []bool{false, true} {
				receipt, err := order()
				require.NoError(t, err)
				require.True(t, receipt.Refused)
				require.Equal(t, replayed, receipt.Replayed)
				require.EqualValues(t, 402, receipt.Code)
				require.Equal(t, "card declined", string(receipt.Body))
			}
			require.Zero(t, b.points(t), "the effect of a refused operation was kept")
		})
	}
}

func TestStepsHandlerTimeoutEndsTheContextWithACause(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{HandlerTimeout: 20 * time.Millisecond})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "HandlerTimeout")
	require.Zero(t, b.records(t))
}
