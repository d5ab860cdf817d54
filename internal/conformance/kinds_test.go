package conformance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
)

// kind makes houses, with leases as long as is asked for.
type kind struct {
	name string
	make func(*testing.T, time.Duration) *house
}

func kinds() []kind {
	return append([]kind{
		{"native", func(t *testing.T, l time.Duration) *house { return onEmulator(t, false, l).throughFront() }},
		{"table", func(t *testing.T, l time.Duration) *house { return onEmulator(t, true, l).throughFront() }},
		{"table on the bare emulator", func(t *testing.T, l time.Duration) *house { return onEmulator(t, true, l).bare() }},
		{"native by sql.DB", func(t *testing.T, l time.Duration) *house { return onEmulator(t, false, l).byDatabaseSQL() }},
		{"table by sql.DB", func(t *testing.T, l time.Duration) *house { return onEmulator(t, true, l).byDatabaseSQL() }},
		{"memory", inMemory},
	}, services()...)
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

// place is a database on an emulator with a queue in it.
type place struct {
	t     *testing.T
	db    *emulatortest.DB
	queue schema.Queue
	table bool
	lease time.Duration
}

func onEmulator(t *testing.T, table bool, lease time.Duration) place {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{LeaseLength: lease, IdleBound: time.Second, ClosedBound: 200 * time.Millisecond}})
	d := definition("Q")
	var ddl []string
	for _, element := range append(elements(d, table), effectsTable(d.Name)) {
		ddl = append(ddl, element.Statements()...)
	}
	return place{t, e.Database(t, ddl...), d, table, lease}
}

func (p place) throughFront() *house {
	h := inSpanner(p.t, p.queue, p.table, p.lease, func() *spanner.Client { return p.db.Client(p.t) })
	h.faults = func(r fault.Rule) *fault.Handle {
		r.Database = p.db.Name
		return p.db.Front().Faults().Add(r)
	}
	return h
}

func (p place) bare() *house {
	return withClientEach(inSpanner(p.t, p.queue, p.table, p.lease, func() *spanner.Client { return p.db.Bare(p.t) }))
}

// inMemory has no transaction for the handler: an effect is counted when the handler has done it, whatever becomes of the
// acknowledgement.
func inMemory(t *testing.T, lease time.Duration) *house {
	t.Helper()
	m := queuetest.New(definition("Q"), queuetest.Options{LeaseLength: lease})
	var mu sync.Mutex
	counts := map[string]int64{}
	h := &house{
		t: t, length: lease, name: "Q",
		open: func(...queue.Option) *queue.Queue { return m.Queue() },
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
	h.tx = h.googleTx
	return h
}

// googleTx is processor.Tx.
func (h *house) googleTx(f func(context.Context, *queue.Message, func() error) error) processor.Handler {
	return processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		return f(ctx, m, func() error { return h.effect(ctx, tx, m) })
	})
}
