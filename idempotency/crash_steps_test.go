package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// crashLease is how long others wait for a process that was killed. On a loaded
// machine it is also what that process has for its way to where it is killed.
const crashLease = 5 * time.Second

// twoPoints is an operation in steps that adds a point in its first and one in
// its last. between, if not nil, is called outside.
func twoPoints(ctx context.Context, store *idempotency.Store, key string, between func()) (idempotency.Receipt, error) {
	return store.Steps(ctx, crashOp(key), payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		_, err := idempotency.Local(ctx, run, "first", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
			_, err := pointFor(key, nil)(ctx, tx)
			return 1, err
		})
		if err != nil {
			return err
		}
		_, err = idempotency.Outside[int]{Call: func(context.Context, string) (int, error) {
			if between != nil {
				between()
			}
			return 1, nil
		}}.Step(ctx, run, "call")
		if err != nil {
			return err
		}
		return run.Complete(ctx, pointFor(key, nil))
	})
}

// childInSteps is child for an operation in steps. Its lease is renewed until
// it is killed.
func childInSteps(ctx context.Context, client *spanner.Client, key string) error {
	store, err := idempotency.New(client, schema.Operations{}, idempotency.Config{Lease: crashLease})
	if err != nil {
		return err
	}
	_, err = twoPoints(ctx, store, key, func() {
		fmt.Println("done")
		select {}
	})
	return err
}

// F24: a process is killed at each point of an operation in steps. Nobody waits for
// it for longer than its lease, and the next call goes on from where it was: no
// step is done twice, none is left out.
func TestKilledInSteps(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{IdleBound: 500 * time.Millisecond, ClosedBound: 100 * time.Millisecond}})
	b := newBenchOn(t, e, schema.Operations{}, idempotency.Config{})
	points := []struct {
		name  string
		rule  fault.Rule
		begun bool // there is a record
	}{
		{"before the claim", fault.Rule{Method: "Commit", Tag: "spanqueue-claim", Nth: 1, Do: fault.Hold()}, false},
		{"after the claim", fault.Rule{Method: "Commit", Tag: "spanqueue-claim", Nth: 1, Do: fault.HoldReply()}, true},
		{"before the step's commit", fault.Rule{Method: "Commit", Tag: "spanqueue-step", Nth: 1, Do: fault.Hold()}, true},
		{"after the step's commit", fault.Rule{Method: "Commit", Tag: "spanqueue-step", Nth: 1, Do: fault.HoldReply()}, true},
		{"in the call", fault.Rule{}, true},
	}
	for _, p := range points {
		_, err := b.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Accounts", []string{"Id", "Points"}, []any{p.name, 0})})
		require.NoError(t, err)
		b.kill(t, p.name, p.rule, childSteps+"=1")
		if p.begun {
			_, err := b.store.Lookup(t.Context(), crashOp(p.name))
			require.ErrorIs(t, err, idempotency.ErrInProgress, p.name)
		}
	}
	for _, p := range points {
		calls := 0
		ask := time.NewTicker(20 * time.Millisecond)
		defer ask.Stop()
		receipt, err := twoPoints(t.Context(), b.store, p.name, func() { calls++ })
		for errors.Is(err, idempotency.ErrInProgress) && t.Context().Err() == nil {
			left, _ := idempotency.RetryAfter(err)
			require.LessOrEqual(t, left, crashLease, "%s: the lease of a dead process was renewed", p.name)
			<-ask.C
			receipt, err = twoPoints(t.Context(), b.store, p.name, func() { calls++ })
		}
		require.NoError(t, err, p.name)
		require.False(t, receipt.Replayed, p.name)
		require.Equal(t, 1, calls, p.name)
		require.Equal(t, [2]int64{2, 1}, b.effectAndReceipt(t, p.name), "%s: one point for each step", p.name)
	}
}
