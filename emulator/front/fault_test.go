package front_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

const rstStream = "stream terminated by RST_STREAM"

// What is answered in place of a Commit, and what became of the transaction.
func TestFaultsOnCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do      fault.Action
		code    codes.Code // of the Commit
		again   codes.Code // of a second Commit
		landed  bool
		leaves  bool // the client gives up first
		cutsOff bool
	}{
		"abort":                  {do: fault.Abort(), code: codes.Aborted, again: codes.Aborted},
		"before":                 {do: fault.Before(codes.Unknown, "outcome unknown"), code: codes.Unknown, again: codes.Aborted},
		"before, unavailable":    {do: fault.Before(codes.Unavailable, "gone"), code: codes.Unavailable, again: codes.Aborted},
		"after":                  {do: fault.After(codes.Internal, rstStream), code: codes.Internal, again: codes.OK, landed: true},
		"after, aborted":         {do: fault.After(codes.Aborted, "a lie"), code: codes.Aborted, again: codes.OK, landed: true},
		"drop":                   {do: fault.Drop(), code: codes.DeadlineExceeded, again: codes.OK, landed: true, leaves: true},
		"forget":                 {do: fault.Forget(), code: codes.Unavailable, again: codes.NotFound, landed: true},
		"cut":                    {do: fault.Cut(), code: codes.Unavailable, again: codes.OK, cutsOff: true, landed: true},
		"cut reply":              {do: fault.CutReply(), code: codes.Unavailable, again: codes.OK, cutsOff: true, landed: true},
		"delay longer than wait": {do: fault.Delay(time.Hour), code: codes.DeadlineExceeded, again: codes.OK, leaves: true, landed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := fronted(t, front.Options{})
			h := s.Faults().Add(fault.Rule{Method: "Commit", Database: r.database, Tag: "queue=Q", Nth: 1, Do: test.do})
			rs, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: insertSQL("sql"), Seqno: 1,
				RequestOptions: &spannerpb.RequestOptions{TransactionTag: "queue=Q"}})
			require.NoError(t, err)
			tx := rs.GetMetadata().GetTransaction().GetId()
			ctx := r.ctx()
			if test.leaves {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			_, err = r.commit(ctx, tx, insert("mutation")) // without a tag: the front knows the transaction's
			requireCode(t, test.code, err)
			require.NoError(t, h.Wait(r.ctx()))
			require.Equal(t, 1, h.Applied())
			require.Equal(t, "queue=Q", h.Records()[0].Tag)

			_, err = r.commit(r.ctx(), tx, insert("mutation"))
			requireCode(t, test.again, err)
			want := "0"
			if test.landed {
				want = "2"
			}
			require.Equal(t, want, r.count("TRUE"))
			if code := status.Code(r.rollback(r.ctx(), tx)); code != codes.OK && code != codes.FailedPrecondition {
				t.Errorf("rollback: %v", code)
			}
			require.Equal(t, want, r.count("TRUE"), "the rollback undid a commit")
			r.requireFree()
			require.Zero(t, s.Stats().OpenTransactions)
		})
	}
}

// A Commit that got stuck lands when it is let go, although its client has given it up and asked what became of it.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	h := s.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.Late()})
	tx := r.hold("sql")
	ctx, cancel := context.WithTimeout(r.ctx(), 200*time.Millisecond)
	defer cancel()
	_, err := r.commit(ctx, tx, insert("mutation"))
	requireCode(t, codes.DeadlineExceeded, err)
	require.Equal(t, "0", r.count("TRUE"))

	// The next transaction is under way: it waits for the turn of the one that has not ended.
	second := make(chan error, 1)
	go func() {
		_, err := r.sql(r.ctx(), begins(readWrite), "DELETE FROM T WHERE Id = 'sql' ASSERT_ROWS_MODIFIED 0")
		second <- err
	}()
	eventually(t, "nobody waits", func() bool { return s.Stats().Waiting == 1 })
	h.Release()
	requireCode(t, codes.OutOfRange, <-second)
	require.Equal(t, "2", r.count("TRUE"))
	_, err = r.commit(r.ctx(), tx, insert("mutation"))
	require.NoError(t, err, "the answer was kept")
	r.requireFree()
}

// A statement that begins its transaction and whose answer is lost leaves nothing behind: nobody knows its id.
func TestLostAnswerOfAnInlineBegin(t *testing.T) {
	t.Parallel()
	inline := map[string]func(ctx context.Context, r *raw) error{
		"ExecuteSql": func(ctx context.Context, r *raw) error {
			_, err := r.sql(ctx, begins(readWrite), insertSQL("a"))
			return err
		},
		"ExecuteStreamingSql": func(ctx context.Context, r *raw) error {
			_, err := all(r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: insertSQL("a"), Seqno: 1}))
			return err
		},
		"Read": func(ctx context.Context, r *raw) error {
			_, err := r.Read(ctx, readAll(r, begins(readWrite)))
			return err
		},
		"StreamingRead": func(ctx context.Context, r *raw) error {
			_, err := all(r.StreamingRead(ctx, readAll(r, begins(readWrite))))
			return err
		},
		"ExecuteBatchDml": func(ctx context.Context, r *raw) error {
			_, err := r.batch(ctx, begins(readWrite), insertSQL("a"))
			return err
		},
	}
	for method, call := range inline {
		for name, test := range map[string]struct {
			do     fault.Action
			code   codes.Code
			leaves bool
		}{
			"after":  {fault.After(codes.Internal, rstStream), codes.Internal, false},
			"before": {fault.Before(codes.Unavailable, "gone"), codes.Unavailable, false},
			"abort":  {fault.Abort(), codes.Aborted, false},
			"drop":   {fault.Drop(), codes.DeadlineExceeded, true},
			"cut":    {fault.CutReply(), codes.Unavailable, false},
		} {
			t.Run(method+"/"+name, func(t *testing.T) {
				t.Parallel()
				r, s := fronted(t, front.Options{})
				h := s.Faults().Add(fault.Rule{Method: method, Nth: 1, Do: test.do})
				ctx := r.ctx()
				if test.leaves {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
					defer cancel()
				}
				requireCode(t, test.code, call(ctx, r))
				require.NoError(t, h.Wait(r.ctx()))
				eventually(t, "the transaction is left open", func() bool { return s.Stats().OpenTransactions == 0 })
				r.requireFree()
				require.Equal(t, "0", r.count("Id = 'a'"))
			})
		}
	}
}

// So does a statement that begins its transaction and fails.
func TestFailedInlineBegin(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	for name, call := range map[string]func() error{
		"ExecuteSql": func() error {
			_, err := r.sql(r.ctx(), begins(readWrite), missSQL)
			return err
		},
		"ExecuteStreamingSql": func() error {
			_, err := all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: missSQL, Seqno: 1}))
			return err
		},
		"ExecuteBatchDml": func() error {
			b, err := r.batch(r.ctx(), begins(readWrite), missSQL, insertSQL("a"))
			require.NoError(t, err)
			require.Empty(t, b.GetResultSets())
			return status.FromProto(b.GetStatus()).Err()
		},
	} {
		requireCode(t, codes.OutOfRange, call())
		require.Zero(t, s.Stats().OpenTransactions, name)
		r.requireFree()
	}
	_, err := r.Read(r.ctx(), &spannerpb.ReadRequest{Session: r.session, Transaction: begins(readWrite), Table: "Nope", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}})
	requireCode(t, codes.NotFound, err)
	r.requireFree()
}

// Google's client, whose Commit meets INTERNAL RST_STREAM after it has landed, runs the function again: why acks are
// asserted. With the answer UNAVAILABLE it asks again and learns the outcome.
func TestLostCommitAnswerThroughGooglesClient(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	for _, test := range []struct {
		do   fault.Action
		runs int
	}{{fault.After(codes.Internal, rstStream), 2}, {fault.After(codes.Unavailable, "gone"), 1}} {
		h := s.Faults().Add(fault.Rule{Method: "Commit", Tag: "t", Nth: 1, Do: test.do})
		runs := 0
		_, err := c.ReadWriteTransactionWithOptions(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			runs++
			_, err := tx.Update(ctx, spanner.NewStatement("INSERT OR UPDATE INTO T (Id, N) VALUES ('a', 1)"))
			return err
		}, spanner.TransactionOptions{TransactionTag: "t"})
		require.NoError(t, err)
		require.Equal(t, test.runs, runs)
		require.Equal(t, 1, h.Applied())
		h.Remove()
	}
}

// A hand-held transaction whose Commit gave no answer is rolled back by its program. That neither undoes nor disturbs it.
func TestRollbackAfterALostCommitAnswer(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	s.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.After(codes.Internal, "lost")})
	tx, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), c)
	require.NoError(t, err)
	_, err = tx.Update(t.Context(), spanner.NewStatement(insertSQL("a")))
	require.NoError(t, err)
	_, err = tx.Commit(t.Context())
	requireCode(t, codes.Internal, err)
	tx.Rollback(t.Context())
	require.EqualValues(t, 1, rowsOf(t, c, "SELECT COUNT(*) FROM T"))
	require.EqualValues(t, 1, s.RPCs()["Rollback"])
	_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id"}, []any{"b"})})
	require.NoError(t, err)
}

// The start of one transaction is held until another has committed.
func TestHoldTheStart(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	start := s.Faults().Add(fault.Rule{Method: "ExecuteSql", SQL: "'held'", Nth: 1, Do: fault.Hold()})
	held := make(chan error, 1)
	go func() {
		_, err := r.sql(r.ctx(), begins(readWrite), insertSQL("held"))
		held <- err
	}()
	require.NoError(t, start.Wait(r.ctx()))
	r.requireFree() // it holds nothing yet
	require.Empty(t, held)
	start.Release()
	require.NoError(t, <-held)
}

// The reply of a Commit that landed is held while its client gives up.
func TestHoldTheReply(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	tx := r.hold("a")
	reply := s.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.HoldReply()})
	ctx, cancel := context.WithCancel(r.ctx())
	defer cancel()
	committed := make(chan error, 1)
	go func() {
		_, err := r.commit(ctx, tx)
		committed <- err
	}()
	require.NoError(t, reply.Wait(r.ctx()))
	require.Equal(t, "1", r.count("TRUE"), "the reply is held before the commit has landed")
	r.requireFree() // its turn is over
	require.Empty(t, committed)
	cancel()
	requireCode(t, codes.Canceled, <-committed)
	_, err := r.commit(r.ctx(), tx)
	require.NoError(t, err)
}

func TestForgetThroughGooglesClient(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	s.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.Forget()})
	runs := 0
	_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		_, err := tx.Update(ctx, spanner.NewStatement(insertSQL("a")))
		return err
	})
	requireCode(t, codes.NotFound, err)
	require.Equal(t, 1, runs)
	require.EqualValues(t, 1, rowsOf(t, c, "SELECT COUNT(*) FROM T"))
	require.EqualValues(t, 2, s.RPCs()["Commit"])
}

// A database that is away answers nothing and comes back with what it had.
func TestAway(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	tx := r.hold("a")
	h := s.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.Away(300 * time.Millisecond)})
	begin := time.Now()
	_, err := r.commit(r.ctx(), tx)
	requireCode(t, codes.Unavailable, err)
	_, err = r.sql(r.ctx(), nil, "SELECT 1")
	if time.Since(begin) < 300*time.Millisecond {
		requireCode(t, codes.Unavailable, err)
	}
	eventually(t, "it does not come back", func() bool {
		_, err := r.commit(r.ctx(), tx)
		return err == nil
	})
	require.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
	require.Equal(t, 1, h.Applied())
	require.Equal(t, "1", r.count("TRUE"))
}

// Rules see RPCs of every service, and the rows of open streams.
func TestFaultsElsewhere(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	h := s.Faults().Add(fault.Rule{Method: "GetDatabase", Database: r.database, Nth: 1, Do: fault.Before(codes.PermissionDenied, "no")})
	_, err := r.admin().GetDatabase(r.ctx(), &databasepb.GetDatabaseRequest{Name: r.database})
	requireCode(t, codes.PermissionDenied, err)
	got, err := r.admin().GetDatabase(r.ctx(), &databasepb.GetDatabaseRequest{Name: r.database})
	require.NoError(t, err)
	require.Equal(t, r.database, got.GetName())
	require.Equal(t, 1, h.Applied())

	s.Faults().Add(fault.Rule{Method: "UpdateDatabaseDdl", SQL: "CREATE TABLE U", Nth: 1, Do: fault.Before(codes.Unavailable, "no")})
	_, err = r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: r.database, Statements: []string{"CREATE TABLE U (Id INT64) PRIMARY KEY (Id)"}})
	requireCode(t, codes.Unavailable, err)
}

func TestFaultsOnRows(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE QUEUE Q (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)")
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	for i := range 4 {
		_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Q", spanner.Key{i}, "p")})
		require.NoError(t, err)
	}
	receive := func(ctx context.Context) (n int, err error) {
		err = c.Single().Query(ctx, spanner.NewStatement("SELECT Id FROM RECEIVE_Q(max_duration => '1s', max_batch_size => 10)")).Do(func(*spanner.Row) error { n++; return nil })
		return n, err
	}
	const wait = 300 * time.Millisecond
	delay := s.Faults().Add(fault.Rule{Rows: true, SQL: "RECEIVE_Q", Nth: 2, Do: fault.Delay(wait)})
	broken := s.Faults().Add(fault.Rule{Rows: true, SQL: "RECEIVE_Q", Nth: 4, Do: fault.Before(codes.FailedPrecondition, "broken")})
	begin := time.Now()
	n, err := receive(t.Context())
	requireCode(t, codes.FailedPrecondition, err)
	require.Equal(t, 3, n)
	require.GreaterOrEqual(t, time.Since(begin), wait)
	require.Equal(t, 1, delay.Applied())
	require.Equal(t, 1, broken.Applied())
	require.Equal(t, 2, delay.Records()[0].N)
}

// A panic costs its RPC and nothing else.
func TestPanicInAPredicate(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{Logger: quiet})
	h := s.Faults().Add(fault.Rule{Method: "ExecuteSql", Do: fault.Abort(), Match: func(fault.Call) bool { panic("a test's mistake") }})
	_, err := r.sql(r.ctx(), nil, "SELECT 1")
	requireCode(t, codes.Internal, err)
	_, err = r.apply(r.ctx(), insert("a"))
	require.NoError(t, err)
	h.Remove()
	require.Equal(t, "1", r.count("TRUE"))
}

func TestCloseLetsEverythingGo(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	s.Faults().Add(fault.Rule{Method: "ExecuteSql", SQL: "'held'", Do: fault.Hold()})
	s.Faults().Add(fault.Rule{Method: "ExecuteSql", SQL: "'dropped'", Do: fault.Drop()})
	r.hold("owner")
	ended := make(chan error, 3)
	for _, id := range []string{"held", "waits", "dropped"} {
		go func() {
			_, err := r.sql(context.Background(), begins(readWrite), insertSQL(id))
			ended <- err
		}()
	}
	eventually(t, "they do not wait", func() bool { return s.Stats().Waiting == 2 })
	require.NoError(t, s.Close())
	for range 3 {
		require.Error(t, <-ended)
	}
	require.NoError(t, s.Close())
	require.Equal(t, front.Stats{}, s.Stats())
}
