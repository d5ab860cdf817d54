package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"google.golang.org/api/option"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/schema"
)

// Everything is much shorter than on the service, so that a minute holds a lot of trouble.
const (
	leaseLength = 2 * time.Second
	idleBound   = time.Second            // after which a transaction that does nothing loses its turn to those who wait
	closedBound = 200 * time.Millisecond // the same when its client's connection has closed
)

// tables hold what a message does. N is only ever added to, and nothing keeps a second effect from landing: it would show.
// Sent is written by the producers in the transactions that send.
const tables = schema.SQL(`
CREATE TABLE Effects (
  Id STRING(20) NOT NULL,
  N  INT64 NOT NULL,
) PRIMARY KEY (Id);

CREATE TABLE Sent (
  Id STRING(20) NOT NULL,
) PRIMARY KEY (Id);
`)

// database is the emulator with the run's database on it.
type database struct {
	emulator *emulator.Emulator
	name     string
	// bare reads what stands in the emulator, past the front with its faults and past the library.
	bare *spanner.Client
}

func openDatabase(ctx context.Context, on setting, log *slog.Logger) (db *database, err error) {
	db = &database{name: fmt.Sprintf("projects/torture/instances/torture/databases/torture-%d", os.Getpid())}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	// The emulator is paused, so it must be our own.
	if db.emulator, err = emulator.Start(ctx, emulator.Options{
		IgnoreEnvironment: true,
		NoFront:           on.bare(),
		Front:             front.Options{LeaseLength: leaseLength, IdleBound: idleBound, ClosedBound: closedBound},
		Logger:            log,
	}); err != nil {
		return db, err
	}
	if err := db.emulator.CreateDatabase(ctx, db.name); err != nil {
		return db, err
	}
	if err := db.applySchema(ctx, on); err != nil {
		return db, err
	}
	db.bare, err = newClient(ctx, db.name, emulator.ClientOptions(db.emulator.BackendAddr())...)
	return db, err
}

func newClient(ctx context.Context, database string, opts ...option.ClientOption) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true}, opts...)
}

func (db *database) applySchema(ctx context.Context, on setting) error {
	ddl, err := admin.NewDatabaseAdminClient(ctx, db.emulator.ClientOptions()...)
	if err != nil {
		return err
	}
	defer ddl.Close()
	elements := []schema.Element{tables}
	for _, name := range queueNames {
		elements = append(elements, on.elements(name)...)
	}
	_, err = schema.Apply(ctx, ddl, db.name, elements...)
	return err
}

// ids reads the ids of a table.
func (db *database) ids(ctx context.Context, table string) ([]string, error) {
	var ids []string
	err := db.bare.Single().Read(ctx, table, spanner.AllKeys(), []string{"Id"}).Do(func(row *spanner.Row) error {
		var id string
		err := row.Columns(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// effects reads how often each message's effect has happened.
func (db *database) effects(ctx context.Context) (map[string]int64, error) {
	effects := make(map[string]int64)
	err := db.bare.Single().Read(ctx, "Effects", spanner.AllKeys(), []string{"Id", "N"}).Do(func(row *spanner.Row) error {
		var id string
		var n int64
		err := row.Columns(&id, &n)
		effects[id] = n
		return err
	})
	return effects, err
}

// close ends whatever openDatabase has begun, also after it failed half way.
func (db *database) close() error {
	if db.bare != nil {
		db.bare.Close()
	}
	if db.emulator == nil {
		return nil
	}
	return db.emulator.Close()
}
