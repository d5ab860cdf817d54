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

// F11: times are the database's, to the nanosecond, however they are written.
func TestF11TimesReadBackExactly(t *testing.T) {
	t.Parallel()
	c := withFront(t, front.Options{LeaseLength: time.Minute}, taskQueue).Client(t) // a loaded machine is slow to acknowledge
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	due := time.Now().Add(2 * time.Second).Truncate(time.Second).Add(123456789)
	utc := due.UTC()
	tokyo := due.In(time.FixedZone("", 9*60*60))
	insert := func(id int, expression string, params map[string]any) {
		t.Helper()
		_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.Statement{SQL: fmt.Sprintf("INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (%d, 'x', %s)", id, expression), Params: params})
			return err
		})
		require.NoError(t, err, expression)
	}
	// Mutations first: they make a time that is past into the present one.
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "mutation", spanner.WithDeliveryTime(due)))
	apply(t, c, spanner.Send("Tasks", spanner.Key{6}, "another zone", spanner.WithDeliveryTime(tokyo)))
	insert(2, "@due", map[string]any{"due": due})
	insert(3, "TIMESTAMP '"+utc.Format(time.RFC3339Nano)+"'", nil)
	insert(4, "'"+tokyo.Format(time.RFC3339Nano)+"'", nil)
	insert(5, "TIMESTAMP '"+utc.Format("2006-01-02 15:04:05.999999999")+" UTC'", nil)
	const forms = 6
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, values[int64](t, c, "SELECT Id FROM Tasks WHERE DeliverTime = TIMESTAMP '"+utc.Format(time.RFC3339Nano)+"' ORDER BY Id"))
	for _, aggregate := range []string{"MIN", "MAX"} {
		got := values[time.Time](t, c, "SELECT "+aggregate+"(DeliverTime) FROM Tasks")[0]
		requireMicroseconds(t, due, got)
	}
	insert(7, "TIMESTAMP_ADD(@earlier, INTERVAL 1 HOUR)", map[string]any{"earlier": due.Add(-time.Hour)})
	requireMicroseconds(t, due, values[time.Time](t, c, "SELECT DeliverTime FROM Tasks WHERE Id = 7")[0])
	apply(t, c, spanner.Ack("Tasks", spanner.Key{7}))
	for range forms {
		m := open.next(t)
		require.True(t, due.Equal(m.DeliverTime), "message %d: %v is not %v", m.ID, m.DeliverTime, due)
		require.False(t, time.Now().Before(due))
		require.Less(t, time.Since(due), queuePatience)

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

// requireMicroseconds is for what SQL has computed, since the emulator may cut it to microseconds.
func requireMicroseconds(t testing.TB, want, got time.Time) {
	t.Helper()
	require.WithinRange(t, got, want.Truncate(time.Microsecond), want)
}

// F11: a time that is past, or a little ahead of this machine's clock, is taken as it is; a message that is due is due.
func TestF11TimesAroundNow(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	for i, offset := range []time.Duration{-time.Hour, -time.Nanosecond, 0, time.Nanosecond, 10 * time.Millisecond} {
		for j, send := range []func(id int, due time.Time) error{
			func(id int, due time.Time) error {
				_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{id}, "x", spanner.WithDeliveryTime(due))})
				return err
			},
			func(id int, due time.Time) error {
				_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (@id, 'x', @due)", Params: map[string]any{"id": id, "due": due}})
					return err
				})
				return err
			},
		} {
			id, due := 10*i+j, time.Now().Add(offset)
			require.NoError(t, send(id, due), "%v from now", offset)
			m := open.next(t)
			require.EqualValues(t, id, m.ID)
			require.False(t, time.Now().Before(due))
			require.False(t, m.DeliverTime.Before(due), "%v became %v", due, m.DeliverTime)
		}
	}
}

func TestF11SkewedDatabaseClock(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			t.Parallel()
			const lease = 10 * time.Second
			const about = 10 * time.Second // what a loaded machine may take; the clocks differ by much more
			c := withFront(t, front.Options{ClockOffset: offset}, taskQueue).Client(t)
			serverNow := func() time.Time { return values[time.Time](t, c, "SELECT CURRENT_TIMESTAMP()")[0] }
			require.WithinDuration(t, time.Now().Add(offset), serverNow(), about)

			open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
			_, err := dml(t.Context(), c, "INSERT INTO Tasks (Id, Payload) VALUES (1, 'by SQL')")
			require.NoError(t, err)
			apply(t, c, spanner.Send("Tasks", spanner.Key{2}, "by mutation"))
			sent := time.Now()
			for range 2 {
				m := open.next(t)
				require.Less(t, time.Since(sent), about, "now is now, whatever the clock")
				require.WithinDuration(t, serverNow(), m.DeliverTime, about)
				require.WithinDuration(t, serverNow().Add(lease), m.Expiration, about)
				require.WithinDuration(t, serverNow().Add(lease), renewTasks(t, c, m.LeaseToken)[0].Expiration.Time, about)
				apply(t, c, spanner.Ack("Tasks", spanner.Key{m.ID}))
			}

			// A delay on the server's clock takes its time on any clock.
			sent = time.Now()
			_, err = dml(t.Context(), c, "INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (3, 'later', TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 SECOND))")
			require.NoError(t, err)
			require.EqualValues(t, 3, open.next(t).ID)
			took := time.Since(sent)
			require.GreaterOrEqual(t, took, 990*time.Millisecond)
			require.Less(t, took, about)
		})
	}
}
