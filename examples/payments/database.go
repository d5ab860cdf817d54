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
	"github.com/google/uuid"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// leaseLength of messages is short, so that what failed comes back soon.
const leaseLength = 2 * time.Second

// database is the emulator with the example's database on it.
type database struct {
	emulator *emulator.Emulator
	name     string
	client   *spanner.Client
	outbox   *queue.Queue
}

func openDatabase(ctx context.Context, log *slog.Logger, more ...schema.Element) (db *database, err error) {
	db = &database{name: fmt.Sprintf("projects/example/instances/payments/databases/p%d-%s", os.Getpid(), uuid.NewString()[:8])}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	db.emulator, err = emulator.Start(ctx, emulator.Options{Front: front.Options{LeaseLength: leaseLength, Logger: log}, Logger: log})
	if err != nil {
		return db, err
	}
	if db.emulator.Front() == nil {
		return db, errors.New("the faults of this program need a front of its own: unset SPANNER_EMULATOR_HOST")
	}
	if err := db.emulator.CreateDatabase(ctx, db.name); err != nil {
		return db, err
	}
	if err := db.applySchema(ctx, more); err != nil {
		return db, err
	}
	config := spanner.ClientConfig{DisableNativeMetrics: true}
	if db.client, err = spanner.NewClientWithConfig(ctx, db.name, config, db.emulator.ClientOptions()...); err != nil {
		return db, err
	}
	db.outbox, err = queue.New(db.client, mails, queue.LeaseLength(leaseLength))
	return db, err
}

func (db *database) applySchema(ctx context.Context, more []schema.Element) error {
	ddl, err := admin.NewDatabaseAdminClient(ctx, db.emulator.ClientOptions()...)
	if err != nil {
		return err
	}
	defer ddl.Close()
	_, err = schema.Apply(ctx, ddl, db.name,
		append(more, operations, mails, schema.Attempts{Queue: mails}, schema.DeadLetters{Queue: mails}, tables)...)
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(db.emulator.DropDatabase(ctx, db.name), db.emulator.Close())
}
