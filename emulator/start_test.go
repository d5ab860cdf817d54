package emulator

import (
	"context"
	"os"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/front"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// start starts an emulator for one test.
func start(t *testing.T, o Options) *Emulator {
	t.Helper()
	o.IgnoreEnvironment = true
	e, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

const database = "projects/p/instances/test/databases/points"

// client makes a client of Google's for the database of that name.
func client(t *testing.T, e *Emulator, name string) *spanner.Client {
	t.Helper()
	c, err := spanner.NewClientWithConfig(t.Context(), name, spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func insertAccount(ctx context.Context, c *spanner.Client, id int64) error {
	_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("Account", []string{"Id"}, []any{id})})
	return err
}

const accountTable = `CREATE TABLE Account (Id INT64 NOT NULL) PRIMARY KEY (Id)`

func TestStartGivesAnEmulatorThatAnswers(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NoError(t, e.CreateDatabase(t.Context(), database, accountTable))
	require.NoError(t, insertAccount(t.Context(), client(t, e, database), 1))
}

func TestTwoStartsAtOnceDoNotCollide(t *testing.T) {
	t.Parallel()
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			e := start(t, Options{})
			// The same name in each: a shared port would answer with AlreadyExists, or lose the table.
			require.NoError(t, e.CreateDatabase(t.Context(), database, accountTable))
			c := client(t, e, database)
			for i := range int64(20) {
				require.NoError(t, insertAccount(t.Context(), c, i))
			}
		})
	}
}

func TestCreateDatabaseTwiceIsAnError(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NoError(t, e.CreateDatabase(t.Context(), database))
	require.Equal(t, codes.AlreadyExists, status.Code(e.CreateDatabase(t.Context(), database)))
	require.NoError(t, e.DropDatabase(t.Context(), database))
	require.NoError(t, e.DropDatabase(t.Context(), database), "one that is not there")
	require.NoError(t, e.CreateDatabase(t.Context(), database), "the name is free again")
}

func TestUpdateDatabase(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NoError(t, e.CreateDatabase(t.Context(), database))
	require.NoError(t, e.UpdateDatabase(t.Context(), database, accountTable))
	require.NoError(t, insertAccount(t.Context(), client(t, e, database), 1))
	require.Equal(t, codes.InvalidArgument, status.Code(e.UpdateDatabase(t.Context(), database, "CREATE NONSENSE")))
}

func TestWrongNamesAreRefused(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	for _, name := range []string{"", "d", "projects/p/databases/d", "projects/p/instances/test/databases/", "instances/i/databases/d"} {
		require.ErrorContains(t, e.CreateDatabase(t.Context(), name), "is not projects/P/instances/I", name)
	}
}

func TestCloseMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	<-e.Done()
	require.NoError(t, e.Err(), "a wanted end is no failure")
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		says    string
	}{
		"negative timeout":   {Options{StartTimeout: -1}, "Options.StartTimeout is -1ns; it must be positive"},
		"address":            {Options{Addr: "9010"}, `Options.Addr is "9010"; it must be host:port`},
		"port of the child":  {Options{Args: []string{"--host_port=localhost:9010"}}, `Options.Args sets "--host_port=localhost:9010"`},
		"port, two words":    {Options{Args: []string{"-host_port", "localhost:9010"}}, `Options.Args sets "-host_port"`},
		"the front's":        {Options{Front: front.Options{LeaseLength: 1}, Binary: "/nowhere"}, "Options.Front: front: Options.LeaseLength is 1ns, want at least 50ms"},
		"binary not there":   {Options{Binary: "/nowhere/emulator_main"}, `Options.Binary is "/nowhere/emulator_main": file does not exist`},
		"binary is a folder": {Options{Binary: os.TempDir()}, "it is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.options.IgnoreEnvironment = true
			_, err := Start(t.Context(), tc.options)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
