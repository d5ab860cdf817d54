package emulatortest

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/option"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// DB is a database of one test.
type DB struct {
	// Name is the full name, projects/P/instances/I/databases/D.
	Name string

	emulator *Emulator
}

// Database creates a database on the shared emulator with the statements ddl, and drops it when t has ended.
func Database(t testing.TB, ddl ...string) *DB {
	t.Helper()
	return Shared(t).Database(t, ddl...)
}

// Database creates a database with the statements ddl, in an instance of its own, and drops both when t has ended.
func (e *Emulator) Database(t testing.TB, ddl ...string) *DB {
	t.Helper()
	instance := fmt.Sprintf("%s/instances/test-%d", project, e.databases.Add(1))
	db := &DB{Name: instance + "/databases/test", emulator: e}
	ctx, cancel := context.WithTimeout(context.Background(), createTimeout)
	defer cancel()
	if err := e.CreateDatabase(ctx, db.Name, ddl...); err != nil {
		t.Fatalf("emulatortest: %v", err)
	}
	t.Cleanup(func() {
		select {
		case <-e.Done(): // the test ended the emulator, and the database with it
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		if err := e.DropDatabase(ctx, db.Name); err != nil {
			t.Errorf("emulatortest: %v", err)
		}
		if err := e.DropInstance(ctx, instance); err != nil {
			t.Errorf("emulatortest: %v", err)
		}
	})
	return db
}

// Client makes a client of Google's for the database, through the front, and closes it when t has ended. opts are
// added to those that lead it to the emulator.
func (db *DB) Client(t testing.TB, opts ...option.ClientOption) *spanner.Client {
	t.Helper()
	return db.ClientWithConfig(t, spanner.ClientConfig{}, opts...)
}

// ClientWithConfig is Client with a configuration. Native metrics are always off: their exporter looks for Google's
// cloud, and SPANNER_EMULATOR_HOST would decide about it.
func (db *DB) ClientWithConfig(t testing.TB, config spanner.ClientConfig, opts ...option.ClientOption) *spanner.Client {
	t.Helper()
	return db.client(t, db.emulator.Addr(), config, opts)
}

// Bare makes a client that bypasses the front. The bare emulator runs one read-write transaction a session, and a
// client has one session for them all: each goroutine that writes needs a client of its own.
func (db *DB) Bare(t testing.TB, opts ...option.ClientOption) *spanner.Client {
	t.Helper()
	return db.client(t, db.emulator.BackendAddr(), spanner.ClientConfig{}, opts)
}

func (db *DB) client(t testing.TB, addr string, config spanner.ClientConfig, opts []option.ClientOption) *spanner.Client {
	t.Helper()
	config.DisableNativeMetrics = true
	client, err := spanner.NewClientWithConfig(context.Background(), db.Name, config, append(emulator.ClientOptions(addr), opts...)...)
	if err != nil {
		t.Fatalf("emulatortest: make a client for %s: %v", db.Name, err)
	}
	t.Cleanup(client.Close)
	return client
}

// Emulator returns the emulator that holds the database.
func (db *DB) Emulator() *Emulator { return db.emulator }

// Front returns the front, for its faults. The shared emulator has one for all tests: a fault that is not bound to this
// database by its rule hits them all.
func (db *DB) Front() *front.Server { return db.emulator.Front() }

// Endpoint is the address for clients, as host:port.
func (db *DB) Endpoint() string { return db.emulator.Addr() }

// ClientOptions returns the options that lead a client of Google's, data or admin, to the emulator.
func (db *DB) ClientOptions() []option.ClientOption { return db.emulator.ClientOptions() }
