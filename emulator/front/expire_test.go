package front_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

const soon = 20 * time.Millisecond

// Expired rows of tables and queues go, with their children; all others stay.
func TestRowDeletion(t *testing.T) {
	t.Parallel()
	db := withFront(t, front.Options{RowDeletionInterval: soon},
		"CREATE TABLE Log (Id INT64 NOT NULL, Sub STRING(10), Seen TIMESTAMP) PRIMARY KEY (Sub DESC, Id), ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 3 DAY))",
		"CREATE INDEX LogByTime ON Log (Seen)",
		"CREATE TABLE Line (Id INT64 NOT NULL, Sub STRING(10), N INT64 NOT NULL) PRIMARY KEY (Sub DESC, Id, N), INTERLEAVE IN PARENT Log ON DELETE CASCADE",
		"CREATE TABLE Kept (Id INT64 NOT NULL, Seen TIMESTAMP) PRIMARY KEY (Id)",
		taskQueue+", ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 0 DAY))",
		"CREATE QUEUE Old (Id INT64 NOT NULL, Seen TIMESTAMP NOT NULL, Payload JSON NOT NULL) PRIMARY KEY (Id, Seen)")
	c := db.Client(t)
	ages := map[int64]time.Duration{1: 0, 2: 2*24*time.Hour + 23*time.Hour, 3: 3*24*time.Hour + time.Minute, 4: 100 * 24 * time.Hour}
	var ms []*spanner.Mutation
	for id, age := range ages {
		for _, sub := range []spanner.NullString{{}, {StringVal: "x", Valid: true}} {
			ms = append(ms, spanner.Insert("Log", []string{"Id", "Sub", "Seen"}, []any{id, sub, time.Now().Add(-age)}))
			ms = append(ms, spanner.Insert("Line", []string{"Id", "Sub", "N"}, []any{id, sub, 1}))
		}
		ms = append(ms, spanner.Insert("Kept", []string{"Id", "Seen"}, []any{id, time.Now().Add(-age)}))
		ms = append(ms, spanner.Send("Old", spanner.Key{id, time.Now().Add(-age)}, spanner.NullJSON{Value: 1, Valid: true}))
	}
	ms = append(ms, spanner.Insert("Log", []string{"Id", "Seen"}, []any{5, spanner.NullTime{}}))
	ms = append(ms, spanner.Send("Tasks", spanner.Key{1}, "now"), spanner.Send("Tasks", spanner.Key{2}, "later", spanner.WithDeliveryTime(time.Now().Add(time.Hour))))
	apply(t, c, ms...)

	eventually(t, "expired rows stay", func() bool {
		return len(values[int64](t, c, "SELECT Id FROM Log")) == 5 && len(values[int64](t, c, "SELECT Id FROM Tasks")) == 1
	})
	require.ElementsMatch(t, []int64{1, 1, 2, 2, 5}, values[int64](t, c, "SELECT Id FROM Log"))
	require.ElementsMatch(t, []int64{1, 1, 2, 2}, values[int64](t, c, "SELECT Id FROM Line"))
	require.Equal(t, []int64{2}, values[int64](t, c, "SELECT Id FROM Tasks"))
	require.Len(t, values[int64](t, c, "SELECT Id FROM Kept"), 4, "without a policy nothing goes")
	require.Len(t, values[int64](t, c, "SELECT Id FROM Old"), 4)

	// A policy that comes later is obeyed, and one that goes is not.
	require.NoError(t, updateDDL(t, db, "ALTER QUEUE Old ADD ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 30 DAY))", "ALTER QUEUE Tasks DROP ROW DELETION POLICY"))
	eventually(t, "expired messages stay", func() bool { return len(values[int64](t, c, "SELECT Id FROM Old")) == 3 })
	apply(t, c, spanner.Send("Tasks", spanner.Key{3}, "now"))
	require.EqualValues(t, 3, receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')").next(t).ID)
	for range 2 { // whole looks pass
		apply(t, c, spanner.Insert("Log", []string{"Id", "Seen"}, []any{100, time.Now().Add(-100 * 24 * time.Hour)}))
		eventually(t, "expired rows stay", func() bool { return len(values[int64](t, c, "SELECT Id FROM Log WHERE Id = 100")) == 0 })
	}
	require.ElementsMatch(t, []int64{2, 3}, values[int64](t, c, "SELECT Id FROM Tasks"))
	require.ElementsMatch(t, []int64{1, 2, 3}, values[int64](t, c, "SELECT Id FROM Old"))
}

// Rows expire by the database's clock, and not at all if so wished.
func TestRowDeletionByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	const logTable = "CREATE TABLE Log (Id INT64 NOT NULL, Seen TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 1 DAY))"
	left := func(c *spanner.Client) []int64 { return values[int64](t, c, "SELECT Id FROM Log ORDER BY Id") }
	fill := func(c *spanner.Client) {
		for id, age := range []time.Duration{0, 23 * time.Hour, 25 * time.Hour} {
			apply(t, c, spanner.Insert("Log", []string{"Id", "Seen"}, []any{id, time.Now().Add(-age)}))
		}
	}
	ahead := withFront(t, front.Options{RowDeletionInterval: soon, ClockOffset: 2 * time.Hour}, logTable).Client(t)
	behind := withFront(t, front.Options{RowDeletionInterval: soon, ClockOffset: -2 * time.Hour}, logTable, "CREATE TABLE Other (Id INT64 NOT NULL, Seen TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 1 DAY))").Client(t)
	off := withFront(t, front.Options{RowDeletionInterval: -1}, logTable).Client(t)
	for _, c := range []*spanner.Client{ahead, behind, off} {
		fill(c)
	}
	eventually(t, "expired rows stay", func() bool { return len(left(ahead)) == 1 })
	require.Equal(t, []int64{0}, left(ahead))
	// The other table of the database shows that its rows have been looked at.
	apply(t, behind, spanner.Insert("Other", []string{"Id", "Seen"}, []any{1, time.Now().Add(-48 * time.Hour)}))
	eventually(t, "expired rows stay", func() bool { return len(values[int64](t, behind, "SELECT Id FROM Other")) == 0 })
	require.Equal(t, []int64{0, 1, 2}, left(behind))
	require.Equal(t, []int64{0, 1, 2}, left(off))
}

// A transaction that has the turn is not disturbed, and the rows it has seen are there until it has committed.
func TestRowDeletionTakesItsTurn(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE TABLE T (Id STRING(36) NOT NULL, N INT64, Seen TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 1 DAY))")
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{RowDeletionInterval: soon})
	r := newRaw(t, addr, db.Name)
	_, err := r.apply(r.ctx(), insert("old"))
	require.NoError(t, err)
	holder := r.hold("holder")
	_, err = r.sql(r.ctx(), byID(holder), "UPDATE T SET Seen = TIMESTAMP '2020-01-01T00:00:00Z' WHERE TRUE")
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), holder)
	require.NoError(t, err)
	eventually(t, "expired rows stay", func() bool { return r.count("TRUE") == "0" })

	// It expires while somebody has the turn.
	expires := time.Now().Add(500 * time.Millisecond)
	_, err = r.apply(r.ctx(), insert("expires"))
	require.NoError(t, err)
	tx := r.begin(readWrite)
	_, err = r.sql(r.ctx(), byID(tx), fmt.Sprintf("UPDATE T SET Seen = TIMESTAMP '%s' WHERE TRUE", expires.Add(-24*time.Hour).UTC().Format(time.RFC3339Nano)))
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), tx)
	require.NoError(t, err)
	holder = r.hold("holder")
	eventually(t, "the deletion does not wait", func() bool { return s.Stats().Waiting == 1 })
	require.False(t, time.Now().Before(expires))
	_, err = r.sql(r.ctx(), byID(holder), "UPDATE T SET N = 7 WHERE Id = 'expires' ASSERT_ROWS_MODIFIED 1")
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), holder)
	require.NoError(t, err)
	eventually(t, "expired rows stay", func() bool { return r.count("Id = 'expires'") == "0" })
	require.Equal(t, "1", r.count("Id = 'holder'"))
}

func TestRowDeletionIntervalIsChecked(t *testing.T) {
	t.Parallel()
	_, err := front.New(t.Context(), "localhost:1", front.Options{RowDeletionInterval: time.Millisecond})
	require.ErrorContains(t, err, "Options.RowDeletionInterval")
	require.Equal(t, codes.Unknown, spanner.ErrCode(err))
}
