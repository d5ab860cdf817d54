package queue_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// ackAll acknowledges the messages and adds 1 to the number of each that was held.
func (w *world) ackAll(ms []*queue.Message) (missing []*queue.Message, err error) {
	err = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var err error
		if missing, err = w.queue.AckAll(ctx, tx, ms); err != nil {
			return err
		}
		lost := make(map[*queue.Message]bool)
		for _, m := range missing {
			lost[m] = true
		}
		var writes []*spanner.Mutation
		for _, m := range ms {
			if !lost[m] {
				writes = append(writes, spanner.Insert("Effects", []string{"Id", "N"}, []any{m.Key[0], 1}))
			}
		}
		return tx.BufferWrite(writes)
	})
	return missing, err
}

func ids(ms []*queue.Message) (all []string) {
	for _, m := range ms {
		all = append(all, m.Key[0].(string))
	}
	return all
}

// names makes n ids.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%05d", i)
	}
	return all
}

// The missing are named, and the rest goes on: gone ones, and those that were sent again under their key.
func TestAckAllNamesTheMissing(t *testing.T) {
	t.Parallel()
	for name, selects := range map[string]bool{"by reading": true, "without SELECT": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			w.send("gone", "held", "moved", "held too")
			ms := w.receive(4)
			byID := make(map[string]*queue.Message)
			for _, m := range ms {
				byID[m.Key[0].(string)] = m
			}
			require.NoError(t, w.ack(byID["gone"]))
			require.NoError(t, w.ack(byID["moved"]))
			w.send("moved")
			if !selects {
				w.denySelect(ms)
			}
			missing, err := w.ackAll([]*queue.Message{byID["gone"], byID["held"], byID["moved"], byID["held too"]})
			require.NoError(t, err)
			require.Equal(t, []string{"gone", "moved"}, ids(missing))
			require.EqualValues(t, 1, w.effects("held"))
			require.EqualValues(t, 1, w.effects("held too"))
			require.Zero(t, w.effects("gone"))
			require.Zero(t, w.effects("moved"))
			require.EqualValues(t, 1, w.count(), "the message that was sent again stays")
		})
	}
}

// denySelect makes the queue one that may not be read, as for a role without SELECT. The first batch is refused; then the
// queue knows it, and reads it no more.
func (w *world) denySelect(ms []*queue.Message) {
	w.t.Helper()
	h := w.fault(fault.Rule{Method: "StreamingRead", Match: w.readsQueue, Do: fault.Before(codes.PermissionDenied, "role has no SELECT")})
	before := w.count()
	_, err := w.ackAll(ms)
	require.Equal(w.t, codes.PermissionDenied, spanner.ErrCode(err))
	require.NotZero(w.t, h.Applied())
	require.Equal(w.t, before, w.count())
}

func (w *world) readsQueue(c fault.Call) bool {
	read, ok := c.Request.(*spannerpb.ReadRequest)
	return ok && read.GetTable() == w.queue.Name()
}

func TestAckAllTakesADeliveryOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	missing, err := w.ackAll([]*queue.Message{m, m})
	require.NoError(t, err)
	require.Len(t, missing, 1, "the second time it is gone")
	require.Zero(t, w.count())
}

func TestAckAllOfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	reads := w.fault(fault.Rule{Method: "StreamingRead", Match: w.readsQueue, Do: fault.Delay(0)})
	missing, err := w.ackAll(nil)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Zero(t, reads.Matched())
}

// Two RPCs for any number of messages: a read and the commit.
func TestAckAllCostsTwoRPCs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, tasks, front.Options{}) // a front of its own: RPCs are counted for all its databases
			w.send(names(n)...)
			ms := w.receive(n)
			before := w.db.Front().RPCs()
			missing, err := w.ackAll(ms)
			require.NoError(t, err)
			require.Empty(t, missing)
			after := w.db.Front().RPCs()
			spent := make(map[string]int64)
			for method, count := range after {
				if count -= before[method]; count > 0 {
					spent[method] = count
				}
			}
			require.Equal(t, map[string]int64{"StreamingRead": 1, "Commit": 1}, spent)
			require.Zero(t, w.count())
		})
	}
}

// A failure of the call itself leaves the transaction unable to commit, also when it is passed over.
func TestSwallowedFailureOfAckAllDoesNotCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	h := w.fault(fault.Rule{Method: "StreamingRead", Nth: 1, Do: fault.After(codes.FailedPrecondition, "no")})
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, statement("m1")); err != nil {
			return err
		}
		_, err := w.queue.AckAll(ctx, tx, []*queue.Message{m})
		require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(err))
		return nil
	})
	requirePoisoned(t, err)
	require.Equal(t, 1, h.Applied())
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 1, w.count())
}

// Without SELECT the statements are cut to what the service takes.
func TestAckAllWithoutSelectTakesManyMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send(names(501)...)
	ms := w.receive(501)
	require.NoError(t, w.ack(ms[500]))
	w.denySelect(ms)
	missing, err := w.ackAll(ms)
	require.NoError(t, err)
	require.Equal(t, []*queue.Message{ms[500]}, missing)
	require.Zero(t, w.count())
}

// An old delivery and the new message of its key in one batch: the new one is taken out, and the old one is missing.
func TestAckAllTellsTwoDeliveriesOfAKeyApart(t *testing.T) {
	t.Parallel()
	for name, selects := range map[string]bool{"by reading": true, "without SELECT": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			w.send("k", "other")
			before := w.receive(2)
			old, other := before[0], before[1]
			if old.Key[0] != "k" {
				old, other = other, old
			}
			require.NoError(t, w.ack(old))
			w.send("k")
			anew := w.receive(1)[0]
			if !selects {
				w.denySelect([]*queue.Message{other})
			}
			ms := []*queue.Message{old, anew, other}
			var missing []*queue.Message
			require.NoError(t, w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) (err error) {
				missing, err = w.queue.AckAll(ctx, tx, ms)
				return err
			}))
			require.Equal(t, []*queue.Message{old}, missing)
			require.Zero(t, w.count())
		})
	}
}
