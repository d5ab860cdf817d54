package front_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// F11: times are the database's, to the nanosecond.
func TestF11TimesReadBackExactly(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	due := time.Now().Add(time.Second).Truncate(time.Second).Add(123456789)
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "mutation", spanner.WithDeliveryTime(due)))
	_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (2, 'parameter', @due)", Params: map[string]any{"due": due}})
		return err
	})
	require.NoError(t, err)
	for range 2 {
		m := open.next(t)
		require.True(t, due.Equal(m.DeliverTime), "message %d: %v is not %v", m.ID, m.DeliverTime, due)
		require.False(t, time.Now().Before(due))
		require.Less(t, time.Since(due), time.Second)

		// It is found by its exact time, in SQL and by the Read API.
		_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			row, err := tx.ReadRow(ctx, "Tasks", spanner.Key{m.ID}, []string{"DeliverTime"})
			if err != nil {
				return err
			}
			var stored time.Time
			if err := row.Columns(&stored); err != nil {
				return err
			}
			require.True(t, due.Equal(stored))
			_, err = tx.Update(ctx, spanner.Statement{
				SQL:    "DELETE FROM Tasks WHERE Id = @id AND DeliverTime = @seen ASSERT_ROWS_MODIFIED 1",
				Params: map[string]any{"id": m.ID, "seen": m.DeliverTime},
			})
			return err
		})
		require.NoError(t, err)
	}
}

func TestF11SkewedDatabaseClock(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			t.Parallel()
			const lease = 2 * time.Second
			c := withFront(t, front.Options{ClockOffset: offset, LeaseLength: lease}, taskQueue).Client(t)
			serverNow := func() time.Time { return values[time.Time](t, c, "SELECT CURRENT_TIMESTAMP()")[0] }
			require.WithinDuration(t, time.Now().Add(offset), serverNow(), time.Second)

			open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
			_, err := dml(t.Context(), c, "INSERT INTO Tasks (Id, Payload) VALUES (1, 'by SQL')")
			require.NoError(t, err)
			apply(t, c, spanner.Send("Tasks", spanner.Key{2}, "by mutation"))
			sent := time.Now()
			for range 2 {
				m := open.next(t)
				require.Less(t, time.Since(sent), time.Second, "now is now, whatever the clock")
				require.WithinDuration(t, serverNow(), m.DeliverTime, time.Second)
				require.WithinDuration(t, serverNow().Add(lease), m.Expiration, time.Second)
				require.WithinDuration(t, serverNow().Add(lease), renewTasks(t, c, m.LeaseToken)[0].Expiration.Time, time.Second)
				apply(t, c, spanner.Ack("Tasks", spanner.Key{m.ID}))
			}

			// A delay on the server's clock takes its time on any clock.
			_, err = dml(t.Context(), c, "INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (3, 'later', TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 SECOND))")
			require.NoError(t, err)
			sent = time.Now()
			require.EqualValues(t, 3, open.next(t).ID)
			require.WithinDuration(t, sent.Add(time.Second), time.Now(), 500*time.Millisecond)
		})
	}
}
