package front_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	databaseadmin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/iterator"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// The tests of queues use Google's client alone: they hold the front against the service's documentation, not against
// this repository's own library.

// taskQueue is a queue like that of the public samples. Effects is a table for the work beside it.
const (
	taskQueue = `CREATE QUEUE Tasks (
  Id      INT64 NOT NULL,
  Payload STRING(MAX) NOT NULL,
) PRIMARY KEY (Id)`
	effectsTable = `CREATE TABLE Effects (Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`
)

// queuePatience bounds every wait for something that should come.
const queuePatience = 60 * time.Second

// shortLeases is a database behind a front of its own whose leases last only so long.
func shortLeases(t testing.TB, length time.Duration, ddl ...string) *emulatortest.DB {
	t.Helper()
	return withFront(t, front.Options{LeaseLength: length}, ddl...)
}

func withFront(t testing.TB, options front.Options, ddl ...string) *emulatortest.DB {
	t.Helper()
	return emulatortest.New(t, emulator.Options{Front: options}).Database(t, ddl...)
}

// task is a message as RECEIVE_Tasks returns it.
type task struct {
	ID          int64     `spanner:"Id"`
	Payload     string    `spanner:"Payload"`
	DeliverTime time.Time `spanner:"DeliverTime"`
	Expiration  time.Time `spanner:"SpannerLeaseExpirationTimestamp"`
	LeaseToken  string    `spanner:"SpannerLeaseToken"`
	Last        bool      `spanner:"SpannerLastBatchMessage"`
}

// receiving is an open receive query.
type receiving struct {
	tasks chan task
	err   error // once ended is closed
	ended chan struct{}
	stop  context.CancelFunc
}

// receiveTasks opens a query and returns at once. It ends with the test.
func receiveTasks(t testing.TB, c *spanner.Client, sql string) *receiving {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiving{tasks: make(chan task, 1000), ended: make(chan struct{}), stop: cancel}
	go func() {
		defer close(r.ended)
		r.err = c.Single().Query(ctx, spanner.NewStatement(sql)).Do(func(row *spanner.Row) error {
			var m task
			if err := row.ToStructLenient(&m); err != nil {
				return err
			}
			select {
			case r.tasks <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// next is the next message.
func (r *receiving) next(t testing.TB) task {
	t.Helper()
	select {
	case m := <-r.tasks:
		return m
	case <-r.ended:
		require.FailNow(t, "the receive query ended", "%v", r.err)
	case <-time.After(queuePatience):
		require.FailNow(t, "no message came")
	}
	return task{}
}

// none checks that no message comes for a while.
func (r *receiving) none(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case m := <-r.tasks:
		require.FailNow(t, "a message came", "%+v", m)
	case <-time.After(d):
	}
}

// end waits for the end of the query.
func (r *receiving) end(t testing.TB) error {
	t.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(queuePatience):
		require.FailNow(t, "the receive query did not end")
		return nil
	}
}

// renewed is a row of RENEWLEASE_Tasks.
type renewed struct {
	Old        string             `spanner:"SpannerOldLeaseToken"`
	New        spanner.NullString `spanner:"SpannerNewLeaseToken"`
	Expiration spanner.NullTime   `spanner:"SpannerLeaseExpirationTimestamp"`
}

func renewTasks(t testing.TB, c *spanner.Client, tokens ...string) []renewed {
	t.Helper()
	var rows []renewed
	err := c.Single().Query(t.Context(), spanner.Statement{
		SQL:    "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => @tokens)",
		Params: map[string]any{"tokens": tokens},
	}).Do(func(row *spanner.Row) error {
		var r renewed
		err := row.ToStruct(&r)
		rows = append(rows, r)
		return err
	})
	require.NoError(t, err)
	return rows
}

func apply(t testing.TB, c *spanner.Client, ms ...*spanner.Mutation) {
	t.Helper()
	_, err := c.Apply(t.Context(), ms)
	require.NoError(t, err)
}

// dml runs statements in one transaction and returns the rows that each has changed.
func dml(ctx context.Context, c *spanner.Client, statements ...string) (counts []int64, err error) {
	_, err = c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		counts = nil
		for _, sql := range statements {
			n, err := tx.Update(ctx, spanner.NewStatement(sql))
			if err != nil {
				return err
			}
			counts = append(counts, n)
		}
		return nil
	})
	return counts, err
}

// values reads the first column of a query.
func values[T any](t testing.TB, c *spanner.Client, sql string) []T {
	t.Helper()
	var all []T
	it := c.Single().Query(t.Context(), spanner.NewStatement(sql))
	defer it.Stop()
	for {
		row, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return all
		}
		require.NoError(t, err)
		var v T
		require.NoError(t, row.Column(0, &v))
		all = append(all, v)
	}
}

func databaseAdmin(t testing.TB, db *emulatortest.DB) *databaseadmin.DatabaseAdminClient {
	t.Helper()
	admin, err := databaseadmin.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(func() { admin.Close() })
	return admin
}

func updateDDL(t testing.TB, db *emulatortest.DB, statements ...string) error {
	t.Helper()
	op, err := databaseAdmin(t, db).UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: db.Name, Statements: statements})
	if err != nil {
		return err
	}
	return op.Wait(t.Context())
}

func describe(t testing.TB, db *emulatortest.DB) []string {
	t.Helper()
	resp, err := databaseAdmin(t, db).GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: db.Name})
	require.NoError(t, err)
	return resp.GetStatements()
}
