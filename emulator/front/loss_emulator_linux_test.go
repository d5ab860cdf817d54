package front_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front"
)

const lostDatabase = "projects/p/instances/test/databases/lost"

// create makes the database of these tests, through the front at addr.
func (l *lone) create(addr string) {
	l.t.Helper()
	r := &raw{t: l.t, conn: dialed(l.t, addr)}
	require.NoError(l.t, createInstance(r, "projects/p/instances/test"))
	_, err := r.admin().CreateDatabase(r.ctx(), &databasepb.CreateDatabaseRequest{
		Parent: "projects/p/instances/test", CreateStatement: "CREATE DATABASE lost", ExtraStatements: []string{table, taskQueue},
	})
	require.NoError(l.t, err)
}

// An emulator that hangs holds everybody up, and when it goes on, so does everything: what was under way ends as it
// would have, nothing is left open, and nothing is lost or done twice.
func TestEmulatorThatHangs(t *testing.T) {
	t.Parallel()
	l := newLone(t)
	s, addr := newFront(t, l.addr, front.Options{IdleBound: 2 * time.Second, Logger: quiet})
	l.create(addr)
	r := newRaw(t, addr, lostDatabase)
	c := clientAt(t, addr, lostDatabase)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "before"))
	held := open.next(t)

	committing, waiting, begun := r.hold("committing"), r.begin(readWrite), r.begin(readWrite)
	before := s.RPCs()
	l.stop()
	commit := background(t, func(context.Context) error {
		_, err := r.commit(context.Background(), committing, insert("mutation"))
		return err
	})
	statement := background(t, func(ctx context.Context) error {
		_, err := r.sql(ctx, byID(waiting), insertSQL("waiting"))
		return err
	})
	send := background(t, func(ctx context.Context) error {
		_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{2}, "during")})
		return err
	})
	renewal := background(t, func(context.Context) []renewed { return renewTasks(t, c, held.LeaseToken) })
	change := background(t, func(ctx context.Context) error {
		_, err := r.admin().UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: lostDatabase, Statements: []string{"CREATE TABLE Later (Id INT64) PRIMARY KEY (Id)"}})
		return err
	})
	eventually(t, "they do not arrive", func() bool {
		now := s.RPCs()
		return now["Commit"] > before["Commit"] && now["ExecuteSql"] > before["ExecuteSql"] && now["BeginTransaction"] > before["BeginTransaction"] &&
			now["ExecuteStreamingSql"] > before["ExecuteStreamingSql"] && now["UpdateDatabaseDdl"] > before["UpdateDatabaseDdl"]
	})
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := r.sql(short, nil, "SELECT 1")
	requireCode(t, codes.DeadlineExceeded, err)
	_, err = r.sql(short, begins(readWrite), insertSQL("gave up"))
	requireCode(t, codes.DeadlineExceeded, err)
	_, err = r.commit(short, begun, insert("gave up too"))
	requireCode(t, codes.DeadlineExceeded, err)

	l.signal(syscall.SIGCONT)
	require.NoError(t, <-commit)
	require.NoError(t, <-statement)
	_, err = r.commit(r.ctx(), waiting)
	require.NoError(t, err)
	require.NoError(t, <-send)
	require.NoError(t, <-change)
	require.True(t, (<-renewal)[0].New.Valid)
	require.EqualValues(t, 2, open.next(t).ID)
	require.NoError(t, r.rollback(r.ctx(), begun))
	eventually(t, "transactions are left open", func() bool { return s.Stats() == front.Stats{} })
	r.requireFree()
	require.Equal(t, "3", r.count("Id IN ('committing', 'mutation', 'waiting')"))
	require.Equal(t, "0", r.count("Id LIKE 'gave up%'"))
}

// An emulator that dies takes everything along; whoever asks is told UNAVAILABLE at once, and when another one stands in
// its place it is used at once, as a new one.
func TestEmulatorThatDiesAndComesBack(t *testing.T) {
	t.Parallel()
	l := newLone(t)
	s, addr := newFront(t, l.addr, front.Options{IdleBound: time.Second, ClosedBound: shortClosed, Logger: quiet})
	l.create(addr)
	r := newRaw(t, addr, lostDatabase)
	c := clientAt(t, addr, lostDatabase)
	for round := range 2 {
		apply(t, c, spanner.Send("Tasks", spanner.Key{1}, fmt.Sprint(round)))
		ctx, stop := context.WithCancel(r.ctx())
		stream, err := r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT Id, SpannerLeaseToken FROM RECEIVE_Tasks(max_duration => '1m')"})
		require.NoError(t, err)
		next := func() (id, token string) {
			for {
				part, err := stream.Recv()
				require.NoError(t, err)
				if v := part.GetValues(); len(v) > 0 {
					return v[0].GetStringValue(), v[1].GetStringValue()
				}
			}
		}
		_, token := next()
		begun, readOnly, active := r.begin(readWrite), r.begin(strong), r.hold("active")
		var waits <-chan error // in the first round; it makes active lose its turn
		if round == 0 {
			waits = background(t, func(ctx context.Context) error {
				_, err := r.sql(ctx, begins(readWrite), insertSQL("waits"))
				return err
			})
			eventually(t, "it does not wait", func() bool { return s.Stats().Waiting == 1 })
		}
		l.signal(syscall.SIGKILL)

		_, err = r.sql(r.ctx(), byID(active), insertSQL("late"))
		requireCode(t, codes.Unavailable, err)
		_, err = r.commit(r.ctx(), active)
		requireCode(t, codes.Unavailable, err)
		if round == 0 {
			require.NoError(t, r.rollback(r.ctx(), active), "what there is not need not be rolled back")
			requireCode(t, codes.Unavailable, <-waits)
			_, err = r.apply(r.ctx(), insert("x"))
			requireCode(t, codes.Unavailable, err)
		}
		begin := time.Now()
		for what, err := range map[string]error{
			"query": func() error { _, err := r.sql(r.ctx(), nil, "SELECT 1"); return err }(),
			"renew": func() error {
				_, err := r.sql(r.ctx(), nil, "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['"+token+"'])")
				return err
			}(),
			"receive": func() error {
				_, err := all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT Id AS Another FROM RECEIVE_Tasks(max_duration => '1m')"}))
				return err
			}(),
			"session": func() error {
				_, err := r.CreateSession(r.ctx(), &spannerpb.CreateSessionRequest{Database: lostDatabase})
				return err
			}(),
			"DDL": func() error {
				_, err := r.admin().GetDatabaseDdl(r.ctx(), &databasepb.GetDatabaseDdlRequest{Database: lostDatabase})
				return err
			}(),
		} {
			require.Equal(t, codes.Unavailable, status.Code(err), "%s: %v", what, err)
		}
		require.Less(t, time.Since(begin), 5*time.Second)

		l.restart()
		eventually(t, "the front does not find it", func() bool {
			_, err := r.sql(r.ctx(), nil, "SELECT 1")
			return status.Code(err) == codes.NotFound
		})
		l.create(addr)
		if round > 0 {
			// The emulator counts its sessions and transactions from the beginning: these are somebody else's now.
			bare := newRaw(t, l.addr, lostDatabase)
			for range 10 {
				other := bare.on(bare.newSession(nil))
				other.begin(readWrite)
			}
			_, err = r.commit(r.ctx(), active)
			requireCode(t, codes.Aborted, err)
		}
		// The session's name is good; what there was is gone, also the messages, and nothing is held.
		_, err = r.commit(r.ctx(), begun)
		require.NoError(t, err, "nothing of it was in the emulator")
		if rs, err := r.sql(r.ctx(), byID(readOnly), "SELECT Id FROM T"); err == nil {
			require.Empty(t, rs.GetRows(), "it reads at a time before the database")
		}
		require.Equal(t, "0", r.count("TRUE"))
		r.requireFree()
		rs, err := r.sql(r.ctx(), nil, "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['"+token+"'])")
		require.NoError(t, err)
		for _, row := range rs.GetRows() {
			require.NotNil(t, row.GetValues()[1].GetKind())
			require.Empty(t, row.GetValues()[1].GetStringValue(), "a lease on a message that is gone was renewed")
		}
		// The stream that was open then goes on with the queue of that name.
		apply(t, c, spanner.Send("Tasks", spanner.Key{2}, "after"))
		id, _ := next()
		require.Equal(t, "2", id)
		apply(t, c, spanner.Ack("Tasks", spanner.Key{2}))
		stop()
		open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m', max_batch_size => 7)")
		open.none(t, 50*time.Millisecond)
		apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "after"))
		require.Equal(t, "after", open.next(t).Payload)
		apply(t, c, spanner.Ack("Tasks", spanner.Key{1}))
		open.stop()
		<-open.ended
		eventually(t, "transactions are left open", func() bool { return s.Stats() == front.Stats{} })
		_, err = r.apply(r.ctx(), &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: &spannerpb.KeySet{All: true}}}})
		require.NoError(t, err)
	}
}

// A rollback that the emulator did not answer for so long that the front gave it up is made up for: until then the
// emulator would abort everybody else.
func TestEmulatorThatHangsForLong(t *testing.T) {
	t.Parallel()
	if !longRun() {
		t.Skip("it takes a minute; set SPANQUEUE_LONG")
	}
	l := newLone(t)
	s, addr := newFront(t, l.addr, front.Options{Logger: quiet})
	l.create(addr)
	r := newRaw(t, addr, lostDatabase)
	tx := r.hold("rolled back")
	l.stop()
	begin := time.Now()
	_, err := r.Rollback(context.Background(), &spannerpb.RollbackRequest{Session: r.session, TransactionId: tx})
	require.NoError(t, err)
	require.Greater(t, time.Since(begin), 20*time.Second, "it was not given up")
	require.Equal(t, front.Stats{}, s.Stats())
	l.signal(syscall.SIGCONT)
	eventually(t, "the emulator still holds the transaction", func() bool {
		_, err := r.apply(r.ctx(), upsert("free"))
		return err == nil
	})
	for range 20 {
		r.requireFree()
	}
	require.Equal(t, "0", r.count("Id = 'rolled back'"))
}
