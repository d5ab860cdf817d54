package idempotency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// forTwoHours is a bench whose records expire two hours after completion. The
// tests move the record's times into the past and wait for nothing.
func forTwoHours(t *testing.T) *bench {
	t.Helper()
	return newBenchOn(t, emulatortest.Shared(t), schema.Operations{Retention: 2 * time.Hour}, idempotency.Config{}, rides)
}

func (b *bench) do(t *testing.T, op idempotency.Operation, fp idempotency.Fingerprint) (idempotency.Receipt, error) {
	t.Helper()
	return b.store.Do(t.Context(), op, fp, effect(idempotency.Result{Code: 1}))
}

// F29: the answer depends on the retention and the database's clock alone, not
// on when a sweep came by.
func TestRetentionIsJudgedOnReading(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{false, true} {
		t.Run(fmt.Sprintf("swept=%v", swept), func(t *testing.T) {
			t.Parallel()
			b := forTwoHours(t)
			_, err := b.do(t, op, payload("p"))
			require.NoError(t, err)
			b.age(t, op, 114*time.Minute) // 1.9 h
			if swept {
				require.Zero(t, b.sweep(t).Deleted, "the sweep took an unexpired record")
			}
			receipt, err := b.do(t, op, payload("p"))
			require.NoError(t, err)
			require.True(t, receipt.Replayed)
			require.Equal(t, 2*time.Hour, receipt.Expires.Sub(receipt.Completed))
			_, err = b.do(t, op, payload("other"))
			require.ErrorIs(t, err, idempotency.ErrMismatch)
			require.EqualValues(t, 1, b.points(t))

			b.age(t, op, 12*time.Minute) // 2.1 h
			if swept {
				require.Equal(t, 1, b.sweep(t).Deleted)
			}
			_, err = b.store.Lookup(t.Context(), op)
			require.ErrorIs(t, err, idempotency.ErrNoRecord)
			receipt, err = b.do(t, op, payload("other")) // the key is free for any request
			require.NoError(t, err)
			require.False(t, receipt.Replayed)
			require.EqualValues(t, 2, b.points(t))
			require.EqualValues(t, 1, b.records(t))
		})
	}
}

func TestRetentionOfSteps(t *testing.T) {
	t.Parallel()
	b := forTwoHours(t)
	run := func() (idempotency.Receipt, error) {
		return b.store.Steps(t.Context(), op, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
			return run.Complete(ctx, effect(idempotency.Result{}))
		})
	}
	_, err := run()
	require.NoError(t, err)
	receipt, err := run()
	require.NoError(t, err)
	require.True(t, receipt.Replayed)
	b.age(t, op, 3*time.Hour)
	receipt, err = run()
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.EqualValues(t, 2, b.points(t))
}

func TestCoversSaysWhetherARedriveComesInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	require.Equal(t, 48*time.Hour, b.store.Retention())
	now := b.now(t)
	for _, at := range []time.Time{now, now.Add(-47 * time.Hour), now.Add(47 * time.Hour)} {
		require.NoError(t, b.store.Covers(t.Context(), at))
	}
	for _, at := range []time.Time{now.Add(-49 * time.Hour), now.Add(49 * time.Hour), {}} {
		require.ErrorIs(t, b.store.Covers(t.Context(), at), idempotency.ErrExpired)
	}
}
