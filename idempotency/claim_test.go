package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/idempotency"
)

func (b *bench) claim(t *testing.T, op idempotency.Operation, fp idempotency.Fingerprint) *idempotency.Claim {
	t.Helper()
	c, err := b.store.Claim(op, fp)
	require.NoError(t, err)
	return c
}

func effect(r idempotency.Result) idempotency.Effect {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return r, addPoint(ctx, tx)
	}
}

func TestClaimInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	run := func(c *idempotency.Claim) (receipt idempotency.Receipt) {
		_, err := b.client.ReadWriteTransactionWithOptions(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Accounts", []string{"Id", "Points"}, []any{"seen", 1})}); err != nil {
				return err
			}
			var err error
			receipt, err = c.Do(ctx, tx, effect(idempotency.Result{Code: 7}))
			return err
		}, idempotency.TransactionOptions(spanner.TransactionOptions{}))
		require.NoError(t, err)
		return receipt
	}
	c := b.claim(t, op, payload("p"))
	_, err := c.Resolve(t.Context())
	require.ErrorIs(t, err, idempotency.ErrNoRecord)

	first := run(c)
	require.False(t, first.Replayed)
	require.EqualValues(t, 7, first.Code)
	again := run(c)
	require.False(t, again.Replayed, "the record is this call's own")
	require.False(t, again.Completed.IsZero())
	another := run(b.claim(t, op, payload("p")))
	require.True(t, another.Replayed)
	require.EqualValues(t, 7, another.Code)
	require.EqualValues(t, 1, b.points(t))

	resolved, err := c.Resolve(t.Context())
	require.NoError(t, err)
	require.Equal(t, again, resolved)
}

// The application passes over the error and returns nil. What it wrote must not
// be kept, whatever the reason.
func TestClaimErrorCannotBeSwallowed(t *testing.T) {
	t.Parallel()
	ownFault := errors.New("out of stock")
	for _, c := range []struct {
		name  string
		state func(t *testing.T, b *bench) // what is there before
		own   error                        // what the effect returns
		want  error
		table string
	}{
		{"mismatch", func(t *testing.T, b *bench) {
			_, err := b.store.Do(t.Context(), op, payload("other"), effect(idempotency.Result{}))
			require.NoError(t, err)
		}, nil, idempotency.ErrMismatch, "spanqueue_operation_mismatch"},
		{"in progress", func(t *testing.T, b *bench) { b.begun(t, op, "in_progress", time.Now()) }, nil, idempotency.ErrInProgress, "spanqueue_operation_in_progress"},
		{"uncertain", func(t *testing.T, b *bench) { b.begun(t, op, "uncertain", time.Now().Add(-time.Hour)) }, nil, idempotency.ErrUncertain, "spanqueue_operation_uncertain"},
		{"the effect's own error", func(*testing.T, *bench) {}, ownFault, ownFault, "spanqueue_operation_not_done"},
		{"a refusal", func(*testing.T, *bench) {}, idempotency.Refuse(idempotency.Result{Code: 402}), nil, "spanqueue_operation_not_done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			c.state(t, b)
			before, claim := b.points(t), b.claim(t, op, payload("p"))
			_, err := b.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := claim.Do(ctx, tx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					require.NoError(t, addPoint(ctx, tx))
					return idempotency.Result{}, c.own
				})
				require.Error(t, err)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
				return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Accounts", []string{"Id", "Points"}, []any{"a", 100})})
			})
			require.Equal(t, codes.NotFound, spanner.ErrCode(err))
			require.ErrorContains(t, err, c.table)
			require.Equal(t, before, b.points(t))
		})
	}
}

// begun puts in place the record of an operation that another process began.
func (b *bench) begun(t *testing.T, op idempotency.Operation, state string, leased time.Time) {
	t.Helper()
	fp := payload("p")
	_, err := b.client.Apply(t.Context(), []*spanner.Mutation{spanner.InsertMap("Operations", map[string]any{
		"Scope": op.Scope, "Operation": op.Name, "OperationKey": op.Key, "Shard": 0, "Fingerprint": fp[:], "State": state,
		"Owner": "another process", "Generation": 1, "LeasedAt": leased, "LeaseMillis": 30_000,
		"ResultCode": 0, "ResultVersion": 0, "BodyDropped": false, "CreatedAt": leased, "RetainSeconds": 172800,
	})})
	require.NoError(t, err)
}

func TestClaimRefuseInASecondTransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	c := b.claim(t, op, payload("p"))
	_, err := b.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := c.Do(ctx, tx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return idempotency.Result{}, errors.Join(addPoint(ctx, tx), idempotency.Refuse(idempotency.Result{Code: 402}))
		})
		return err
	})
	var refusal *idempotency.Refusal
	require.ErrorAs(t, err, &refusal)
	var receipt idempotency.Receipt
	_, err = b.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var err error
		receipt, err = c.Refuse(ctx, tx, refusal)
		return err
	})
	require.NoError(t, err)
	require.True(t, receipt.Refused)
	require.EqualValues(t, 402, receipt.Code)
	require.Zero(t, b.points(t))
	again, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	require.True(t, again.Refused && again.Replayed)
}

func TestClaimRefusesBadArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	_, err := b.store.Claim(op, idempotency.Fingerprint{})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	require.ErrorContains(t, err, "fingerprint is empty")
	_, err = b.store.Claim(idempotency.Operation{}, payload("p"))
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, err = b.store.Do(t.Context(), idempotency.Operation{}, payload("p"), effect(idempotency.Result{}))
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, err = b.store.Steps(t.Context(), idempotency.Operation{}, payload("p"), nil)
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, err = b.store.Do(t.Context(), op, payload("p"), nil)
	require.ErrorContains(t, err, "the effect of add point")
	_, err = b.store.Steps(t.Context(), op, payload("p"), nil)
	require.ErrorContains(t, err, "the function of add point")
	_, err = b.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := b.claim(t, op, payload("p")).Do(ctx, tx, nil)
		return err
	})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	require.Zero(t, b.records(t))
	_, err = b.store.Lookup(t.Context(), idempotency.Operation{})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
}

func TestTransactionOptionsKeepTheRest(t *testing.T) {
	t.Parallel()
	got := idempotency.TransactionOptions(spanner.TransactionOptions{
		TransactionTag: "mine",
		IsolationLevel: sppb.TransactionOptions_REPEATABLE_READ,
		ReadLockMode:   sppb.TransactionOptions_ReadWrite_OPTIMISTIC,
	})
	require.Equal(t, spanner.TransactionOptions{
		TransactionTag: "mine",
		IsolationLevel: sppb.TransactionOptions_SERIALIZABLE,
		ReadLockMode:   sppb.TransactionOptions_ReadWrite_PESSIMISTIC,
	}, got)
}
