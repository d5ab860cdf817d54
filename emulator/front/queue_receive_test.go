package front_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// F32: a receive is a strong single-use read, its rows come while it runs, and it ends by itself.
func TestF32ReceiveWhileTheStreamIsOpen(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	begun := time.Now()
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '5s')")
	open.none(t, time.Second)
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	committed := time.Now()
	require.EqualValues(t, 1, open.next(t).ID)
	require.Less(t, time.Since(committed), time.Second)
	require.NoError(t, open.end(t))
	require.WithinDuration(t, begun.Add(5*time.Second), time.Now(), 3*time.Second)
}

func TestF32EmptyQueueEndsAfterMaxDuration(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	for _, form := range []string{"'1s'", "' 1 S '", "\"1S\"", "'0m1s'", "'1000ms'"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			open := receiveTasks(t, c, fmt.Sprintf("SELECT * FROM RECEIVE_Tasks(max_duration => %s)", form))
			require.NoError(t, open.end(t))
			require.Empty(t, open.tasks)
			require.WithinRange(t, time.Now(), begun.Add(time.Second), begun.Add(3*time.Second))
		})
	}
	for _, form := range []string{"'1m'", "' 1 M '", "'20m'", "'1h'"} {
		open := receiveTasks(t, c, fmt.Sprintf("SELECT * FROM RECEIVE_Tasks(max_duration => %s)", form))
		select {
		case <-open.ended:
			require.FailNow(t, "it ended", "%s: %v", form, open.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestF32EarlyCloseLeavesTheLeaseToRunOut(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	db := shortLeases(t, lease, taskQueue)
	c := db.Client(t)
	stats := func() front.QueueStats {
		stats, err := db.Front().QueueStats(t.Context(), db.Name, "tasks")
		require.NoError(t, err)
		return stats
	}
	require.Zero(t, stats())
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	closed := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	first := closed.next(t)
	closed.stop()
	require.Equal(t, codes.Canceled, spanner.ErrCode(closed.end(t)))
	eventually(t, "the receive query is still open", func() bool { return stats() == front.QueueStats{Delivered: 1} })

	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	again := open.next(t)
	require.False(t, time.Now().Before(first.Expiration), "it was leased until then")
	require.Less(t, time.Since(first.Expiration), 10*lease)
	require.True(t, first.DeliverTime.Equal(again.DeliverTime), "a redelivery is the same delivery time")
	require.NotEqual(t, first.LeaseToken, again.LeaseToken)
	require.Empty(t, renewTasks(t, c, first.LeaseToken))
	require.Len(t, renewTasks(t, c, again.LeaseToken), 1)
	require.Equal(t, front.QueueStats{Receivers: 1, Delivered: 2, Redelivered: 1}, stats())
	_, err := db.Front().QueueStats(t.Context(), db.Name, "Nothing")
	require.Equal(t, codes.NotFound, status.Code(err))
}

func TestF32OnlyStrongSingleUseReads(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	for _, sql := range []string{"SELECT * FROM RECEIVE_Tasks(max_duration => '1s')", "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['x'])"} {
		statement := spanner.NewStatement(sql)
		drain := func(it *spanner.RowIterator) error { return it.Do(func(*spanner.Row) error { return nil }) }
		require.NoError(t, drain(c.Single().Query(t.Context(), statement)))
		for name, bound := range map[string]spanner.TimestampBound{
			"exact staleness": spanner.ExactStaleness(time.Second),
			"max staleness":   spanner.MaxStaleness(time.Second),
			"read timestamp":  spanner.ReadTimestamp(time.Now()),
		} {
			err := drain(c.Single().WithTimestampBound(bound).Query(t.Context(), statement))
			require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", name, err)
		}
		readOnly := c.ReadOnlyTransaction()
		err := drain(readOnly.Query(t.Context(), statement))
		readOnly.Close()
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "read-only: %v", err)

		_, err = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return drain(tx.Query(ctx, statement))
		})
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "read-write: %v", err)
		_, err = c.PartitionedUpdate(t.Context(), statement)
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "partitioned: %v", err)
		batch, err := c.BatchReadOnlyTransaction(t.Context(), spanner.StrongRead())
		require.NoError(t, err)
		_, err = batch.PartitionQuery(t.Context(), statement, spanner.PartitionOptions{})
		batch.Close()
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "partition: %v", err)
	}
}

func TestF32AnOpenStreamDoesNotBlockTransactions(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue, effectsTable).Client(t)
	for range 5 {
		receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m') WHERE Id < 0")
	}
	var group errgroup.Group
	begun := time.Now()
	for worker := range 4 {
		group.Go(func() error {
			for i := range 25 {
				id := worker*100 + i
				_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					if _, err := tx.Update(ctx, spanner.NewStatement(fmt.Sprintf("INSERT INTO Effects (Id, N) VALUES (%d, 1)", id))); err != nil {
						return err
					}
					return tx.BufferWrite([]*spanner.Mutation{spanner.Send("Tasks", spanner.Key{id}, "x")})
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Less(t, time.Since(begun), queuePatience)
	require.Equal(t, []int64{100}, values[int64](t, c, "SELECT COUNT(*) FROM Tasks"))
}

// A transaction that keeps its turn for long keeps nobody from receiving and renewing.
func TestQueueReceiveBesideALongTransaction(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue, effectsTable).Client(t)
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Tasks (Id, Payload) VALUES (2, 'not yet')")); err != nil {
			return err
		}
		open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
		m := open.next(t)
		require.EqualValues(t, 1, m.ID)
		require.True(t, renewTasks(t, c, m.LeaseToken)[0].New.Valid)
		open.none(t, 700*time.Millisecond)
		open.stop()
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')").next(t).ID)
}

// Each message goes to one of the receivers.
func TestQueueManyReceivers(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Minute // a loaded machine is slow to acknowledge
	c := withFront(t, front.Options{LeaseLength: lease}, taskQueue).Client(t)
	all := make(chan task, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			err := c.Single().Query(ctx, spanner.NewStatement("SELECT * FROM RECEIVE_Tasks(max_duration => '10m', max_batch_size => 2)")).Do(func(row *spanner.Row) error {
				var m task
				if err := row.ToStruct(&m); err != nil {
					return err
				}
				all <- m
				_, err := dml(ctx, c, fmt.Sprintf("DELETE FROM Tasks WHERE Id = %d ASSERT_ROWS_MODIFIED 1", m.ID))
				return err
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	}
	const n = 200
	for first := range n / 10 {
		var sends []*spanner.Mutation
		for i := range 10 {
			sends = append(sends, spanner.Send("Tasks", spanner.Key{first*10 + i}, "x"))
		}
		apply(t, c, sends...)
	}
	seen := map[int64]time.Time{} // when the lease ends
	for len(seen) < n {
		select {
		case m := <-all:
			require.False(t, m.Expiration.Before(seen[m.ID].Add(lease)), "%d came twice within a lease", m.ID)
			seen[m.ID] = m.Expiration
		case <-time.After(queuePatience):
			require.FailNow(t, "messages are missing", "%d of %d came", len(seen), n)
		}
	}
	require.Eventually(t, func() bool { return values[int64](t, c, "SELECT COUNT(*) FROM Tasks")[0] == 0 }, queuePatience, 10*time.Millisecond)
	cancel()
	require.NoError(t, group.Wait())
}
