package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// leaseLength is that of the emulators; the service has its own.
const leaseLength = time.Second

// house is a queue of some kind, with a table of effects.
type house struct {
	t      *testing.T
	length time.Duration // of a lease
	name   string        // of the queue

	// open returns a handle for one more worker.
	open func() *queue.Queue
	// effect adds 1 to the message's number, in the transaction if the kind has one.
	effect func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error
	// effects returns the number.
	effects func(id string) int64
	// letters returns how many dead letters there are.
	letters func() int
	// faults are those of the front; nil where there is none.
	faults func(fault.Rule) *fault.Handle
}

// kind makes houses.
type kind struct {
	name string
	// has says what the kind can show.
	has  func(need) bool
	make func(t *testing.T) *house
}

// need is what a scenario needs of a kind.
type need string

const (
	spannerTx   need = "a Spanner transaction"    // effects that are undone with their transaction
	frontFaults need = "faults made by the front" // lost answers
	atOnce      need = "transactions at once"     // of a worker's claims, renewals and handlers, on one client
)

func kinds() []kind {
	all := []kind{
		{"native", func(need) bool { return true }, func(t *testing.T) *house { return onEmulator(t, false, true) }},
		{"table", func(need) bool { return true }, func(t *testing.T) *house { return onEmulator(t, true, true) }},
		{"table on the bare emulator", func(n need) bool { return n == spannerTx }, func(t *testing.T) *house { return onEmulator(t, true, false) }},
		{"memory", func(n need) bool { return n == atOnce }, inMemory},
	}
	if name := os.Getenv("SPANQUEUE_TEST_DATABASE"); name != "" {
		for _, table := range []bool{false, true} {
			all = append(all, kind{fmt.Sprintf("service (table: %v)", table), func(n need) bool { return n != frontFaults },
				func(t *testing.T) *house { return onService(t, name, table) }})
		}
	}
	return all
}

func definition(name string) schema.Queue {
	return schema.Queue{
		Name:       name,
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
		Payload:    schema.Bytes(schema.Max),
	}
}

// elements are what stands in the database beside an effects table.
func elements(d schema.Queue, table bool) []schema.Element {
	if table {
		return []schema.Element{schema.QueueTable{Queue: d}, schema.DeadLetters{Queue: d}}
	}
	return []schema.Element{d, schema.Attempts{Queue: d}, schema.DeadLetters{Queue: d}}
}

func effectsTable(name string) schema.SQL {
	return schema.SQL(fmt.Sprintf("CREATE TABLE %sEffects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)", name))
}

func onEmulator(t *testing.T, table, throughFront bool) *house {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{LeaseLength: leaseLength, IdleBound: time.Second, ClosedBound: 200 * time.Millisecond}})
	d := definition("Q")
	var ddl []string
	for _, element := range append(elements(d, table), effectsTable(d.Name)) {
		ddl = append(ddl, element.Statements()...)
	}
	db := e.Database(t, ddl...)
	connect := func() *spanner.Client {
		if throughFront {
			return db.Client(t)
		}
		return db.Bare(t)
	}
	h := inSpanner(t, d, table, connect, leaseLength)
	if throughFront {
		h.faults = func(r fault.Rule) *fault.Handle {
			r.Database = db.Name
			return db.Front().Faults().Add(r)
		}
	}
	return h
}

// inSpanner is what all kinds but memory have in common.
func inSpanner(t *testing.T, d schema.Queue, table bool, connect func() *spanner.Client, length time.Duration) *house {
	t.Helper()
	client := connect()
	effects := d.Name + "Effects"
	number := func(ctx context.Context, tx interface {
		ReadRow(context.Context, string, spanner.Key, []string) (*spanner.Row, error)
	}, id any) (n int64, err error) {
		row, err := tx.ReadRow(ctx, effects, spanner.Key{id}, []string{"N"})
		if errors.Is(err, spanner.ErrRowNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return n, row.Columns(&n)
	}
	return &house{
		t: t, length: length, name: d.Name,
		open: func() *queue.Queue {
			c := connect() // the bare emulator has one transaction a client
			var q *queue.Queue
			var err error
			if table {
				q, err = queue.NewTable(c, schema.QueueTable{Queue: d}, queue.LeaseLength(length), queue.PollInterval(50*time.Millisecond))
			} else {
				q, err = queue.New(c, d, queue.LeaseLength(length))
			}
			require.NoError(t, err)
			return q
		},
		effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			n, err := number(ctx, tx, m.Key[0])
			if err != nil {
				return err
			}
			return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate(effects, []string{"Id", "N"}, []any{m.Key[0], n + 1})})
		},
		effects: func(id string) int64 {
			n, err := number(t.Context(), client.Single(), id)
			require.NoError(t, err)
			return n
		},
		letters: func() int {
			var n int64
			stmt := spanner.NewStatement("SELECT COUNT(*) FROM " + schema.DeadLetters{Queue: d}.TableName())
			require.NoError(t, client.Single().Query(t.Context(), stmt).Do(func(r *spanner.Row) error { return r.Columns(&n) }))
			return int(n)
		},
	}
}

// inMemory has no transaction for the handler: an effect is counted when the handler has done it, whatever becomes of the
// acknowledgement.
func inMemory(t *testing.T) *house {
	t.Helper()
	m := queuetest.New(definition("Q"), queuetest.Options{LeaseLength: leaseLength})
	var mu sync.Mutex
	counts := map[string]int64{}
	return &house{
		t: t, length: leaseLength, name: "Q",
		open: m.Queue,
		effect: func(_ context.Context, _ *spanner.ReadWriteTransaction, msg *queue.Message) error {
			mu.Lock()
			defer mu.Unlock()
			counts[msg.Key[0].(string)]++
			return nil
		},
		effects: func(id string) int64 {
			mu.Lock()
			defer mu.Unlock()
			return counts[id]
		},
		letters: func() int { return len(m.Dead()) },
	}
}

var made atomic.Int64

// onService makes a queue of its own in the user's database, and drops it at the end.
func onService(t *testing.T, name string, table bool) *house {
	t.Helper()
	d := definition(fmt.Sprintf("SpanqueueTest%d_%d", os.Getpid(), made.Add(1)))
	admin, err := database.NewDatabaseAdminClient(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	_, err = schema.Apply(t.Context(), admin, name, append(elements(d, table), effectsTable(d.Name))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		kind := "QUEUE"
		if table {
			kind = "TABLE"
		}
		drop := []string{"DROP TABLE " + d.Name + "Effects", "DROP TABLE " + schema.DeadLetters{Queue: d}.TableName()}
		if !table {
			drop = append(drop, "DROP TABLE "+schema.Attempts{Queue: d}.TableName())
		}
		for _, statement := range append((schema.QueueTable{Queue: d}).Statements(), "") {
			if index, ok := strings.CutPrefix(statement, "CREATE INDEX "); ok && table {
				drop = append(drop, "DROP INDEX "+strings.Fields(index)[0])
			}
		}
		drop = append(drop, "DROP "+kind+" "+d.Name)
		op, err := admin.UpdateDatabaseDdl(context.Background(), &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: drop})
		if err == nil {
			err = op.Wait(context.Background())
		}
		if err != nil {
			t.Errorf("drop what the test made, by hand: %v: %v", drop, err)
		}
	})
	return inSpanner(t, d, table, func() *spanner.Client {
		c, err := spanner.NewClientWithConfig(context.Background(), name, spanner.ClientConfig{DisableNativeMetrics: true})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}, 10*time.Second)
}
