package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// requireNotHeld asserts that the error tells a miss, and keeps what the database said.
func requireNotHeld(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, queue.ErrNotHeld)
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(err))
	require.ErrorContains(t, err, "ASSERT_ROWS_MODIFIED")
}

// requirePoisoned asserts that a commit failed because a miss had been swallowed.
func requirePoisoned(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, codes.NotFound, spanner.ErrCode(err), "%v", err)
	require.ErrorContains(t, err, "spanqueue_message_not_held")
}

func TestAckAndWorkAreOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	rolledBack := errors.New("rolled back")
	for _, end := range []error{rolledBack, nil} {
		err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := w.queue.Ack(ctx, tx, m); err != nil {
				return err
			}
			if _, err := tx.Update(ctx, statement("m1")); err != nil {
				return err
			}
			return end
		})
		require.ErrorIs(t, err, end)
		committed := int64(0)
		if end == nil {
			committed = 1
		}
		require.Equal(t, committed, w.effects("m1"))
		require.Equal(t, 1-committed, w.count())
	}
}

// Two holders of one message: whoever comes second keeps nothing.
func TestAckOfSomebodyElsesMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	require.NoError(t, w.ack(m))
	runs := 0
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		if _, err := tx.Update(ctx, statement("m1")); err != nil {
			return err
		}
		return w.queue.Ack(ctx, tx, m)
	})
	requireNotHeld(t, err)
	require.ErrorContains(t, err, "Tasks")
	require.ErrorContains(t, err, "m1")
	require.Equal(t, 1, runs)
	require.Zero(t, w.effects("m1"))
}

// Holders who come at once: one of them commits, and the effect is there once.
func TestHoldersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	errs := make([]error, 5)
	var holders errgroup.Group
	for i := range errs {
		holders.Go(func() error {
			errs[i] = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				if err := w.queue.Ack(ctx, tx, m); err != nil {
					return err
				}
				_, err := tx.Update(ctx, statement("m1"))
				return err
			})
			return nil
		})
	}
	require.NoError(t, holders.Wait())
	committed := 0
	for _, err := range errs {
		if err == nil {
			committed++
			continue
		}
		requireNotHeld(t, err)
	}
	require.Equal(t, 1, committed)
	require.EqualValues(t, 1, w.effects("m1"))
}

// A miss may be the echo of one's own commit: the client runs the function again although it has landed. The effect is
// there once, and Probe tells that the message is settled.
func TestMissAfterOnesOwnCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: streamReset()})
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := w.queue.Ack(ctx, tx, m); err != nil {
			return err
		}
		_, err := tx.Update(ctx, statement("m1"))
		return err
	})
	requireNotHeld(t, err)
	require.Equal(t, 1, h.Applied())
	require.EqualValues(t, 1, w.effects("m1"))
	presence, err := w.queue.Probe(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, queue.Gone, presence)
}

// As the first statement a miss fails the inline begin: the client runs the function again and then tells the miss.
func TestMissAsTheFirstStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	require.NoError(t, w.ack(m))
	runs := 0
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		if err := w.queue.Ack(ctx, tx, m); err != nil {
			return err
		}
		_, err := tx.Update(ctx, statement("m1"))
		return err
	})
	requireNotHeld(t, err)
	require.Equal(t, 2, runs)
	require.Zero(t, w.effects("m1"))
}

// F04: a caller who passes over the miss cannot commit either, wherever in the transaction it was.
func TestF04SwallowedMissDoesNotCommit(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"ack first": true, "ack last": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			m := w.one("m1")
			require.NoError(t, w.ack(m))
			err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				if first {
					_ = w.queue.Ack(ctx, tx, m)
				}
				if _, err := tx.Update(ctx, statement("m1")); err != nil {
					return err
				}
				if !first {
					_ = w.queue.Ack(ctx, tx, m)
				}
				return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"more", 1})})
			})
			requirePoisoned(t, err)
			require.Zero(t, w.effects("m1"))
			require.Zero(t, w.effects("more"))
		})
	}
}

// Not only a miss: an ack that failed in any way and was passed over must not let the rest commit.
func TestSwallowedFailureOfAckDoesNotCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	h := w.fault(fault.Rule{SQL: "DELETE FROM `Tasks`", Nth: 1, Do: fault.After(codes.PermissionDenied, "not for you")})
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, statement("m1")); err != nil {
			return err
		}
		err := w.queue.Ack(ctx, tx, m)
		require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
		require.NotErrorIs(t, err, queue.ErrNotHeld)
		return nil
	})
	requirePoisoned(t, err)
	require.Equal(t, 1, h.Applied())
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 1, w.count())
}

// The guard: the delivery must be the one that was seen, not only the key.
func TestAckTakesNoOtherDeliveryOfTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	old := w.one("m1")
	require.NoError(t, w.ack(old))
	fresh := w.one("m1")
	require.Equal(t, old.Key, fresh.Key)
	require.NotEqual(t, old.DeliverTime, fresh.DeliverTime)
	requireNotHeld(t, w.ack(old))
	require.EqualValues(t, 1, w.count())
	require.NoError(t, w.ack(fresh))
	require.Zero(t, w.count())
}

func TestMessageOfAnotherQueueIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	stranger := &queue.Message{Key: spanner.Key{"m1", int64(2)}, DeliverTime: time.Now()}
	for name, ack := range map[string]func(context.Context, *spanner.ReadWriteTransaction) error{
		"Ack": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return w.queue.Ack(ctx, tx, stranger)
		},
		"AckAll": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := w.queue.AckAll(ctx, tx, []*queue.Message{stranger})
			return err
		},
		"Resend": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return w.queue.Resend(ctx, tx, stranger, time.Now().Add(time.Hour), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				require.ErrorContains(t, ack(ctx, tx), "Tasks")
				_, err := tx.Update(ctx, statement("m1"))
				return err
			})
			requirePoisoned(t, err)
			require.Zero(t, w.effects("m1"))
		})
	}
}
