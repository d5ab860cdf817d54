package idempotency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// requestFaults are what can become of any single request.
var requestFaults = map[string]fault.Action{
	"aborted":             fault.Abort(),
	"unavailable":         fault.Before(codes.Unavailable, "away"),
	"answer unavailable":  fault.After(codes.Unavailable, "away"),
	"internal":            fault.Before(codes.Internal, "broken"),
	"answer internal":     fault.After(codes.Internal, "broken"),
	"stream reset":        fault.After(codes.Internal, "stream terminated by RST_STREAM"),
	"answer unknown":      fault.After(codes.Unknown, "unknown"),
	"exhausted":           fault.Before(codes.ResourceExhausted, "too much"),
	"refused":             fault.Before(codes.FailedPrecondition, "not now"),
	"transaction unknown": fault.Before(codes.NotFound, "Transaction not found"),
	"connection cut":      fault.Cut(),
	"answer cut":          fault.CutReply(),
}

// Each request of an operation meets each fault in turn, and its caller asks
// again until there is an answer: one ride, one charge, one point, whatever it
// was that broke.
func TestEveryRequestMeetsEveryFault(t *testing.T) {
	t.Parallel()
	for name, do := range requestFaults {
		for how, journey := range journeys {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, idempotency.Config{CommitTimeout: 5 * time.Second}, rides)
				g := &gateway{forgetful: true}
				n := 1
				for ; ; n++ {
					key := fmt.Sprint("request ", n)
					h := b.fault(t, fault.Rule{Nth: n, Do: do})
					body := b.askUntilAnswered(t, func() (idempotency.Receipt, error) { return journey(t.Context(), b.store, g, key) })
					h.Remove()
					again, err := journey(t.Context(), b.store, g, key)
					require.NoError(t, err)
					require.True(t, again.Replayed)
					require.Equal(t, body, string(again.Body), "two answers to one operation")
					require.EqualValues(t, n, b.points(t), "request %d", n)
					if _, charges := g.counts(); how == "Steps" {
						require.Equal(t, n, charges, "request %d", n)
					}
					if h.Applied() == 0 {
						break // there are no more
					}
				}
				require.Greater(t, n, 2, "no request has met the fault")
			})
		}
	}
}

// askUntilAnswered asks as a client does and returns the answer.
func (b *bench) askUntilAnswered(t *testing.T, ask func() (idempotency.Receipt, error)) string {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var errs []error
	for len(errs) < 5 {
		receipt, err := ask()
		if err == nil {
			return string(receipt.Body)
		}
		errs = append(errs, err)
		<-tick.C
	}
	require.FailNow(t, "no answer", "%v", errs)
	return ""
}

// journeys are an operation in each form: a ride and a point, and in steps a
// charge between them, at a side that knows no keys.
var journeys = map[string]func(ctx context.Context, s *idempotency.Store, g *gateway, key string) (idempotency.Receipt, error){
	"Do": func(ctx context.Context, s *idempotency.Store, _ *gateway, key string) (idempotency.Receipt, error) {
		return s.Do(ctx, crashOp(key), payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			if err := insertRide(tx, key, "ride"); err != nil {
				return idempotency.Result{}, err
			}
			return idempotency.Result{Body: []byte("ride")}, addPoint(ctx, tx)
		})
	},
	"Steps": func(ctx context.Context, s *idempotency.Store, g *gateway, key string) (idempotency.Receipt, error) {
		return s.Steps(ctx, crashOp(key), payload("p"), func(ctx context.Context, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "ride", func(_ context.Context, tx *spanner.ReadWriteTransaction) (string, error) {
				return "ride", insertRide(tx, key, "ride")
			})
			if err != nil {
				return err
			}
			c, err := idempotency.Outside[charge]{AtMostOnce: true, Call: g.charge, Reconcile: g.find}.Step(ctx, run, "charge")
			if err != nil {
				return err
			}
			return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{Body: []byte(c.ID)}, addPoint(ctx, tx)
			})
		})
	},
}
