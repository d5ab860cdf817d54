package emulatortest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"cloud.google.com/go/spanner"
	databaseadmin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

const accountTable = `CREATE TABLE Account (Id INT64 NOT NULL, Points INT64) PRIMARY KEY (Id)`

// count reads how many rows a table has.
func count(t *testing.T, c *spanner.Client, table string) int64 {
	t.Helper()
	var n int64
	err := c.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM "+table)).Do(func(r *spanner.Row) error {
		return r.Column(0, &n)
	})
	require.NoError(t, err)
	return n
}

func insert(ctx context.Context, c *spanner.Client, id int64) error {
	_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("Account", []string{"Id", "Points"}, []any{id, 1})})
	return err
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := emulatortest.Database(t, accountTable).Client(t)
			require.Zero(t, count(t, c, "Account"))
			require.NoError(t, insert(t.Context(), c, 1))
			require.EqualValues(t, 1, count(t, c, "Account"))
		})
	}
}

func TestBareClientSeesTheSameDatabase(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, accountTable)
	require.NoError(t, insert(t.Context(), db.Client(t), 7))
	require.EqualValues(t, 1, count(t, db.Bare(t), "Account"))
}

func TestMoreDatabasesThanAnInstanceTakes(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for range 120 { // the emulator refuses the 101st in an instance
		names[emulatortest.Database(t).Name] = true
	}
	require.Len(t, names, 120)
}

func TestDatabaseIsDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	var db *emulatortest.DB
	t.Run("a test", func(t *testing.T) {
		db = emulatortest.Database(t, accountTable)
		// It leaves a transaction open that has locks.
		tx, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), db.Client(t))
		require.NoError(t, err)
		_, err = tx.Update(t.Context(), spanner.NewStatement("INSERT INTO Account (Id) VALUES (1)"))
		require.NoError(t, err)
	})
	admin, err := databaseadmin.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.GetDatabase(t.Context(), &databasepb.GetDatabaseRequest{Name: db.Name})
	require.Equal(t, codes.NotFound, status.Code(err), "%v", err)
}

func TestFrontIsBetween(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{})
	db := e.Database(t, accountTable)
	require.NotNil(t, db.Front())
	require.Same(t, e, db.Emulator())
	before := db.Front().RPCs()["Commit"]
	require.NoError(t, insert(t.Context(), db.Bare(t), 1))
	require.Equal(t, before, db.Front().RPCs()["Commit"], "a bare client went through the front")
	require.NoError(t, insert(t.Context(), db.Client(t), 2))
	require.Equal(t, before+1, db.Front().RPCs()["Commit"])
}

func TestNewWithOptions(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{NoFront: true})
	db := e.Database(t, accountTable)
	require.Nil(t, db.Front())
	require.Equal(t, e.BackendAddr(), db.Endpoint())
	require.NoError(t, insert(t.Context(), db.Client(t), 1))
}

func TestEmulatorThatTheTestEndsItself(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{})
	e.Database(t, accountTable)
	require.NoError(t, e.Close()) // the database is not dropped after it, and no error is reported
}

// failing records how a test was failed. Its Fatal ends the goroutine, as that of a real one does.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper() {}

func (f *failing) Fatal(args ...any) {
	f.text = fmt.Sprint(args...)
	runtime.Goexit()
}

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

func fails(t *testing.T, test func(t testing.TB)) (text string) {
	t.Helper()
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	<-ended
	return f.text
}

func TestFailuresSayWhatWasWrong(t *testing.T) {
	t.Parallel()
	require.Contains(t, fails(t, func(t testing.TB) { emulatortest.Database(t, "CREATE NONSENSE") }), "Syntax error")
	require.Contains(t, fails(t, func(t testing.TB) { emulatortest.New(t, emulator.Options{Binary: "/nowhere"}) }),
		`Options.Binary is "/nowhere": file does not exist`)
}
