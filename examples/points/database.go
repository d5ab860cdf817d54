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

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// leaseLength is short, so that what a stopped worker has left comes back soon. The service's leases last 10 s.
const leaseLength = 2 * time.Second

// database is the emulator with the example's database on it.
type database struct {
	emulator *emulator.Emulator
	name     string
	client   *spanner.Client
	queue    *queue.Queue
	records  *idempotency.Store
}

// openDatabase starts an emulator and creates queue, tables and accounts on it.
func openDatabase(ctx context.Context, opening map[string]int64, log *slog.Logger) (db *database, err error) {
	db = &database{name: fmt.Sprintf("projects/example/instances/points/databases/points-%d", os.Getpid())}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	if db.emulator, err = emulator.Start(ctx, emulator.Options{
		Front:  front.Options{LeaseLength: leaseLength, Logger: log},
		Logger: log,
	}); err != nil {
		return db, err
	}
	if db.emulator.Front() == nil {
		return db, errors.New("the faults of this program need a front of its own: unset SPANNER_EMULATOR_HOST")
	}
	if err := db.emulator.CreateDatabase(ctx, db.name); err != nil {
		return db, err
	}
	if err := db.applySchema(ctx); err != nil {
		return db, err
	}
	config := spanner.ClientConfig{DisableNativeMetrics: true}
	if db.client, err = spanner.NewClientWithConfig(ctx, db.name, config, db.emulator.ClientOptions()...); err != nil {
		return db, err
	}
	if db.queue, err = queue.New(db.client, purchases, queue.LeaseLength(leaseLength)); err != nil {
		return db, err
	}
	if db.records, err = idempotency.New(db.client, records, idempotency.Config{Logger: log}); err != nil {
		return db, err
	}
	return db, db.openAccounts(ctx, opening)
}

func (db *database) applySchema(ctx context.Context) error {
	ddl, err := admin.NewDatabaseAdminClient(ctx, db.emulator.ClientOptions()...)
	if err != nil {
		return err
	}
	defer ddl.Close()
	_, err = schema.Apply(ctx, ddl, db.name,
		purchases,
		schema.Attempts{Queue: purchases},    // the processor remembers there how often a message was tried
		schema.DeadLetters{Queue: purchases}, // and moves there what fails for good
		records,
		tables)
	return err
}

func (db *database) openAccounts(ctx context.Context, opening map[string]int64) error {
	var rows []*spanner.Mutation
	for account, balance := range opening {
		rows = append(rows, spanner.Insert("Accounts", []string{"Account", "Balance"}, []any{account, balance}))
	}
	_, err := db.client.Apply(ctx, rows)
	return err
}

func (db *database) faults() *fault.Set { return db.emulator.Front().Faults() }

// close ends whatever openDatabase has begun, also after it failed half way.
func (db *database) close() error {
	if db.client != nil {
		db.client.Close()
	}
	if db.emulator == nil {
		return nil
	}
	// An emulator that was there before us is left as we found it.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(db.emulator.DropDatabase(ctx, db.name), db.emulator.Close())
}
