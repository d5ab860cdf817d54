package table_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// Whatever happens to commits, each message takes effect once: two processors, and a commit in five that is aborted, is
// answered with an error although it landed, or is not answered at all.
func TestEachMessageTakesEffectOnceUnderFaults(t *testing.T) {
	t.Parallel()
	s := newShop(t, schema.QueueTable{Queue: definition().Queue, Shards: 2}, queue.LeaseLength(time.Second))
	var ids []string
	for i := range 150 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
	}
	s.send(ids...)
	handles := s.faults()
	handler := processor.Tx(addOne)
	one, stopOne := s.work(handler, processor.Config{Concurrency: 4})
	other, stopOther := s.work(handler, processor.Config{Concurrency: 4})
	eventually(t, "the queue to be empty", func() bool {
		stats, err := s.queue.Stats(t.Context())
		return err == nil && stats == queue.Stats{}
	})
	stopOne()
	stopOther()
	s.once(ids...)
	for _, h := range handles {
		require.NotZero(t, h.Applied(), "a fault was not applied: %v", h.Records())
	}
	t.Logf("deliveries: %v and %v", one.Figures().Deliveries, other.Figures().Deliveries)
}

// faults makes a commit in five fail, or seem to.
func (s *shop) faults() []*fault.Handle {
	s.t.Helper()
	var handles []*fault.Handle
	for _, r := range []fault.Rule{
		{Name: "abort", Probability: 0.08, Do: fault.Abort()},
		{Name: "landed, unknown", Probability: 0.04, Do: fault.After(codes.Unknown, "who knows")},
		{Name: "landed, reset", Probability: 0.04, Do: fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")},
		{Name: "landed, unavailable", Probability: 0.04, Do: fault.After(codes.Unavailable, "try again")},
		{Name: "did not land", Probability: 0.04, Do: fault.Before(codes.Internal, "something broke")},
		{Name: "no answer", Nth: 70, Times: 2, Do: fault.Drop()},
		{Name: "late", Nth: 90, Times: 2, Do: fault.DelayReply(700 * time.Millisecond)},
	} {
		r.Method, r.Database, r.Seed = "Commit", s.db.Name, 7
		handles = append(handles, s.db.Front().Faults().Add(r))
	}
	return handles
}

// The messages of one key take effect in their order, whatever happens to commits.
func TestOrderHoldsUnderFaults(t *testing.T) {
	t.Parallel()
	d := schema.QueueTable{OrderColumns: 1, Shards: 2, Queue: schema.Queue{
		Name: "Shop",
		KeyColumns: []schema.Column{
			{Name: "Account", Type: schema.String(20), NotNull: true},
			{Name: "Id", Type: schema.Int64(), NotNull: true},
		},
		Payload: schema.Bytes(schema.Max),
	}}
	s := newShop(t, d, queue.LeaseLength(time.Second))
	const accounts, each = 8, 12
	for n := range each {
		var out []queue.Outgoing
		for a := range accounts {
			out = append(out, queue.Outgoing{Key: spanner.Key{fmt.Sprint("account", a), n}})
		}
		require.NoError(t, s.queue.Send(t.Context(), out))
	}
	handles := s.faults()
	// The effect of a message is that it is the next number of its account: it fails where it is not.
	handler := processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		var next int64
		row, err := tx.ReadRow(ctx, "Effects", spanner.Key{m.Key[0]}, []string{"N"})
		if err == nil {
			err = row.Columns(&next)
		} else if errors.Is(err, spanner.ErrRowNotFound) {
			err = nil
		}
		if err != nil {
			return err
		}
		if next != m.Key[1].(int64) {
			return processor.Discard(fmt.Errorf("%v came when %d was to", m.Key, next))
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], next + 1})})
	})
	one, stopOne := s.work(handler, processor.Config{Concurrency: 4})
	other, stopOther := s.work(handler, processor.Config{Concurrency: 4})
	eventually(t, "the queue to be empty", func() bool {
		stats, err := s.queue.Stats(t.Context())
		return err == nil && stats == queue.Stats{}
	})
	stopOne()
	stopOther()
	for _, p := range []*processor.Processor{one, other} {
		require.Zero(t, p.Figures().Deliveries[processor.Discarded], "%v", p.Figures().Deliveries)
	}
	got := 0
	err := s.client.Single().Read(t.Context(), "Effects", spanner.AllKeys(), []string{"N"}).Do(func(r *spanner.Row) error {
		var n int64
		err := r.Columns(&n)
		require.EqualValues(t, each, n)
		got++
		return err
	})
	require.NoError(t, err)
	require.Equal(t, accounts, got)
	for _, h := range handles {
		require.NotZero(t, h.Applied(), "a fault was not applied")
	}
}
