package schema_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/schema"
)

const users = schema.SQL("CREATE TABLE Users (UserId INT64 NOT NULL) PRIMARY KEY (UserId)")

// nullable is a queue whose key may be NULL in part.
func nullable() schema.Queue {
	return schema.Queue{
		Name: "Reminders",
		KeyColumns: []schema.Column{
			{Name: "UserId", Type: schema.Int64(), NotNull: true},
			{Name: "Kind", Type: schema.String(20)},
		},
		Payload: schema.Bytes(schema.Max),
	}
}

// updates counts the UpdateDatabaseDdl calls of a client.
type updates struct{ atomic.Int64 }

func (u *updates) option() option.ClientOption {
	return option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if method == databasepb.DatabaseAdmin_UpdateDatabaseDdl_FullMethodName {
				u.Add(1)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
}

// admin makes an admin client on addr whose DDL calls are counted.
func admin(t *testing.T, addr string) (*database.DatabaseAdminClient, *updates) {
	t.Helper()
	sent := &updates{}
	client, err := database.NewDatabaseAdminClient(context.Background(), append(emulator.ClientOptions(addr), sent.option())...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client, sent
}

func tablesOf(q schema.Queue) []schema.Element {
	return []schema.Element{
		schema.DeadLetters{Queue: q, RetentionDays: 30}, schema.Attempts{Queue: q}, users,
		schema.SQL("CREATE INDEX ByTime ON RemindersDeadLetters (DeadAt DESC)"),
	}
}

func TestApplyMakesTheTablesOfAQueue(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	client, sent := admin(t, db.Endpoint())

	res, err := schema.Apply(t.Context(), client, db.Name, tablesOf(nullable())...)
	require.NoError(t, err)
	require.Equal(t, []string{"RemindersDeadLetters", "RemindersAttempts", "Users", "ByTime"}, res.Created)
	require.EqualValues(t, 1, sent.Load())

	res, err = schema.Apply(t.Context(), client, db.Name, tablesOf(nullable())...)
	require.NoError(t, err)
	require.Empty(t, res.Created)
	require.Len(t, res.Present, 4)
	require.EqualValues(t, 1, sent.Load(), "the second time nothing may be sent")

	// The tables take what a processor writes, a NULL key part included.
	data := db.Client(t)
	names := schema.DeadLetters{Queue: nullable()}.Columns()
	_, err = data.Apply(t.Context(), []*spanner.Mutation{
		spanner.InsertMap("RemindersDeadLetters", map[string]any{
			"UserId": 1, "Kind": spanner.NullString{}, names.DeadAt: spanner.CommitTimestamp, names.Payload: []byte{0, 1},
			names.DeliverTime: time.Now().Add(time.Hour), names.Reason: "errors", names.Attempts: 3,
			names.LastAt: spanner.CommitTimestamp,
		}),
		spanner.InsertMap("RemindersAttempts", map[string]any{
			"UserId": 1, "Kind": spanner.NullString{}, "DeliverTime": time.Now().Add(time.Hour),
			"Starts": 1, "Errors": 0, "Deferrals": 0, "FirstAt": spanner.CommitTimestamp, "LastAt": spanner.CommitTimestamp,
		}),
	})
	require.NoError(t, err)
	row, err := data.Single().ReadRow(t.Context(), "RemindersAttempts", spanner.Key{1, spanner.NullString{}}, []string{"Starts"})
	require.NoError(t, err)
	var starts int64
	require.NoError(t, row.Columns(&starts))
	require.EqualValues(t, 1, starts)
}

func TestApplyReportsATableOfAnotherShape(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE TABLE REMINDERSATTEMPTS (UserId INT64 NOT NULL, Kind STRING(20)) PRIMARY KEY (UserId, Kind)")
	client, sent := admin(t, db.Endpoint())
	_, err := schema.Apply(t.Context(), client, db.Name, tablesOf(nullable())...)
	require.ErrorIs(t, err, schema.ErrShape)
	var shape *schema.ShapeError
	require.ErrorAs(t, err, &shape)
	require.Equal(t, "RemindersAttempts", shape.Name)
	require.Contains(t, shape.Differences, "column starts: want INT64 NOT NULL, found none")
	require.Contains(t, shape.Found, "REMINDERSATTEMPTS")
	require.Zero(t, sent.Load(), "nothing may be created beside an object of another shape")
}

func TestApplyFromManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	applyAtOnce(t, db, tablesOf(nullable())...)
}

// applyAtOnce applies the elements through several clients at the same time and
// checks that each ends well and that together they created each object once.
func applyAtOnce(t *testing.T, db *emulatortest.DB, want ...schema.Element) {
	t.Helper()
	const processes = 8
	var (
		wg      sync.WaitGroup
		start   = make(chan struct{})
		results [processes]schema.Result
		errs    [processes]error
	)
	for i := range processes {
		client, _ := admin(t, db.Endpoint())
		wg.Go(func() {
			<-start
			results[i], errs[i] = schema.Apply(t.Context(), client, db.Name, want...)
		})
	}
	close(start)
	wg.Wait()
	created := map[string]int{}
	objects := 0
	for i := range processes {
		require.NoError(t, errs[i])
		objects = len(results[i].Created) + len(results[i].Present)
		for _, name := range results[i].Created {
			created[name]++
		}
	}
	require.Len(t, created, objects)
	for name, n := range created {
		require.Equal(t, 1, n, name)
	}
}

// The bare emulator mostly refuses DDL beside an open write; at times it throws
// dice and aborts the write instead, so this looks for a round with a refusal.
func TestApplyWaitsForAnOpenWrite(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE TABLE T (Id INT64) PRIMARY KEY (Id)")
	data := db.Bare(t)
	for round := range 20 {
		client, sent := admin(t, db.Emulator().BackendAddr())
		release := openWrite(t, data, int64(round))
		applied := make(chan error, 1)
		go func() {
			_, err := schema.Apply(t.Context(), client, db.Name,
				schema.SQL(fmt.Sprintf("CREATE TABLE U%d (Id INT64) PRIMARY KEY (Id)", round)))
			applied <- err
		}()
		require.Eventually(t, func() bool { return sent.Load() >= 2 || len(applied) == 1 }, 10*time.Second, time.Millisecond)
		refused := sent.Load() >= 2
		release()
		require.NoError(t, <-applied)
		if refused {
			return
		}
	}
	t.Fatal("the emulator never refused DDL beside an open write")
}

// openWrite opens a transaction that has written and not committed. release
// lets it commit and waits for that; the end of the test does so too.
func openWrite(t *testing.T, data *spanner.Client, id int64) (release func()) {
	t.Helper()
	hold, opened, committed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		_, err := data.ReadWriteTransaction(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO T (Id) VALUES (@id)", Params: map[string]any{"id": id}})
			once.Do(func() { close(opened) })
			<-hold
			return err
		})
		committed <- err
	}()
	<-opened
	release = sync.OnceFunc(func() {
		close(hold)
		require.NoError(t, <-committed)
	})
	t.Cleanup(release)
	return release
}

func TestApplyWrapsTheErrorsOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	client, sent := admin(t, db.Endpoint())

	orphan := schema.SQL("CREATE TABLE Child (UserId INT64 NOT NULL, Id INT64) PRIMARY KEY (UserId, Id), INTERLEAVE IN PARENT Nobody")
	_, err := schema.Apply(t.Context(), client, db.Name, orphan)
	require.Equal(t, codes.NotFound, status.Code(err), err)
	require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	require.ErrorContains(t, err, "create Child")
	require.EqualValues(t, 1, sent.Load(), "what cannot pass is not tried again")

	_, err = schema.Apply(t.Context(), client, db.Name+"x", users)
	require.Equal(t, codes.NotFound, status.Code(err), err)
	require.ErrorContains(t, err, "read the DDL")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = schema.Apply(ctx, client, db.Name, users)
	require.Error(t, err)
	require.Equal(t, codes.Canceled, status.Code(err), err)
}

// What cannot be a database is refused before anybody is asked.
func TestApplyRefusesWhatIsNoDatabase(t *testing.T) {
	t.Parallel()
	client, sent := admin(t, emulatortest.Database(t).Endpoint())
	for _, name := range []string{"", "shop", "projects/p/instances/i", "projects/p/instances/i/databases/d/sessions/s", "projects//instances/i/databases/d"} {
		_, err := schema.Apply(t.Context(), client, name, users)
		require.ErrorContains(t, err, "it must be projects/P/instances/I/databases/D", name)
	}
	require.Zero(t, sent.Load())
	_, err := schema.Apply(t.Context(), nil, "projects/p/instances/i/databases/d", users)
	require.ErrorContains(t, err, "the client is nil")
}

// The shapes of queue tables survive the emulator's own way of showing DDL, for
// every type a key can have there.
func TestApplyRecognisesWhatItMadeForEveryKeyType(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	client, sent := admin(t, db.Endpoint())
	var want []schema.Element
	for i, typ := range []schema.Type{
		schema.Bool(), schema.Int64(), schema.Float32(), schema.Float64(), schema.Numeric(), schema.String(36), schema.String(schema.Max),
		schema.Bytes(16), schema.Bytes(schema.Max), schema.Date(), schema.Timestamp(),
	} {
		q := schema.Queue{
			Name: fmt.Sprintf("Q%d", i),
			KeyColumns: []schema.Column{
				{Name: "Order", Type: typ},
				{Name: "Reason", Type: typ, NotNull: true},
			},
			PrimaryKey: []schema.KeyPart{{Column: "Reason", Desc: true}, {Column: "Order"}},
			Payload:    []schema.Type{schema.JSON(), schema.String(100), schema.Bytes(schema.Max)}[i%3],
		}
		want = append(want, schema.Attempts{Queue: q, RetentionDays: 1}, schema.DeadLetters{Queue: q})
	}
	res, err := schema.Apply(t.Context(), client, db.Name, want...)
	require.NoError(t, err)
	require.Len(t, res.Created, len(want))
	res, err = schema.Apply(t.Context(), client, db.Name, want...)
	require.NoError(t, err)
	require.Len(t, res.Present, len(want))
	require.EqualValues(t, 1, sent.Load())
}
