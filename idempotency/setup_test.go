package idempotency_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// accounts is the table of effects. It has no unique key that would hide a
// doubled effect: an effect adds to a counter.
const accounts = `CREATE TABLE Accounts (Id STRING(64) NOT NULL, Points INT64 NOT NULL) PRIMARY KEY (Id)`

// bench is one test's database, with a store and a client to look with.
type bench struct {
	db     *emulatortest.DB
	client *spanner.Client
	store  *idempotency.Store
	table  schema.Operations
}

func newBench(t *testing.T, cfg idempotency.Config, ddl ...string) *bench {
	t.Helper()
	return newBenchOn(t, emulatortest.Shared(t), schema.Operations{}, cfg, ddl...)
}

func newBenchOn(t *testing.T, e *emulatortest.Emulator, table schema.Operations, cfg idempotency.Config, ddl ...string) *bench {
	t.Helper()
	b := &bench{table: table}
	b.db = e.Database(t, append(append(b.table.Statements(), accounts), ddl...)...)
	b.client = b.db.Client(t)
	b.store = b.newStore(t, cfg)
	_, err := b.client.Apply(t.Context(), []*spanner.Mutation{
		spanner.Insert("Accounts", []string{"Id", "Points"}, []any{"a", 0}),
	})
	require.NoError(t, err)
	return b
}

func (b *bench) newStore(t *testing.T, cfg idempotency.Config) *idempotency.Store {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := idempotency.New(b.client, b.table, cfg)
	require.NoError(t, err)
	return store
}

// addPoint is the effect of most tests.
func addPoint(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
	row, err := tx.ReadRow(ctx, "Accounts", spanner.Key{"a"}, []string{"Points"})
	if err != nil {
		return err
	}
	var n int64
	if err := row.Column(0, &n); err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{
		spanner.Update("Accounts", []string{"Id", "Points"}, []any{"a", n + 1}),
	})
}

// points is how often an effect was committed.
func (b *bench) points(t *testing.T) int64 {
	t.Helper()
	row, err := b.client.Single().ReadRow(t.Context(), "Accounts", spanner.Key{"a"}, []string{"Points"})
	require.NoError(t, err)
	var n int64
	require.NoError(t, row.Column(0, &n))
	return n
}

// records is how many records the table has.
func (b *bench) records(t *testing.T) int64 {
	t.Helper()
	var n int64
	err := b.client.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM Operations")).Do(func(row *spanner.Row) error {
		return row.Column(0, &n)
	})
	require.NoError(t, err)
	return n
}

// age makes what happened to the operation's record look so much older: lease
// and completion.
func (b *bench) age(t *testing.T, op idempotency.Operation, d time.Duration) {
	t.Helper()
	_, err := b.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		columns := []string{"LeasedAt", "CreatedAt", "CompletedAt"}
		row, err := tx.ReadRow(ctx, "Operations", spanner.Key{op.Scope, op.Name, op.Key}, columns)
		if err != nil {
			return err
		}
		var leased, created, completed spanner.NullTime
		if err := row.Columns(&leased, &created, &completed); err != nil {
			return err
		}
		values := []any{op.Scope, op.Name, op.Key}
		for _, at := range []spanner.NullTime{leased, created, completed} {
			at.Time = at.Time.Add(-d)
			values = append(values, at)
		}
		return tx.BufferWrite([]*spanner.Mutation{
			spanner.Update("Operations", append([]string{"Scope", "Operation", "OperationKey"}, columns...), values),
		})
	})
	require.NoError(t, err)
}

func payload(s string) idempotency.Fingerprint { return idempotency.FingerprintBytes([]byte(s)) }

var op = idempotency.Operation{Scope: "tenant-1", Name: "add point", Key: "k1"}

// fault adds a rule for this test's database alone.
func (b *bench) fault(t *testing.T, rule fault.Rule) *fault.Handle {
	t.Helper()
	rule.Database = b.db.Name
	h := b.db.Front().Faults().Add(rule)
	t.Cleanup(h.Remove)
	return h
}

// count counts what a rule matches and lets it be.
func (b *bench) count(t *testing.T, rule fault.Rule) *fault.Handle {
	t.Helper()
	rule.Do = fault.Delay(0)
	return b.fault(t, rule)
}

// now is the database's time.
func (b *bench) now(t *testing.T) (now time.Time) {
	t.Helper()
	err := b.client.Single().Query(t.Context(), spanner.NewStatement("SELECT CURRENT_TIMESTAMP()")).Do(func(row *spanner.Row) error {
		return row.Column(0, &now)
	})
	require.NoError(t, err)
	return now
}

// nothing is an effect without writes.
func nothing(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
	return idempotency.Result{}, nil
}
