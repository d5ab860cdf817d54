package processor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	labEmulators = 2
	labCells     = 28 // at the same time, at most
	tryAgain     = 3  // cells whose fault was not applied
	labInstance  = "projects/matrix/instances/matrix"
)

// lab is where the cells are run.
type lab struct {
	t         *testing.T
	emulators []*cellEmulator
	witness   witness
}

// cellEmulator is an emulator that many cells share.
type cellEmulator struct {
	*emulatortest.Emulator
	bare      spannerpb.SpannerClient // past the front
	databases atomic.Int64
}

func newLab(t *testing.T, emulators int) *lab {
	l := &lab{t: t}
	for range emulators {
		e := emulatortest.New(t, emulator.Options{Front: front.Options{
			LeaseLength: matrixLease,
			IdleBound:   time.Second,
			ClosedBound: 200 * time.Millisecond,
		}})
		e.Front().Faults().Add(l.witness.rule())
		conn, err := grpc.NewClient(e.BackendAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		l.emulators = append(l.emulators, &cellEmulator{Emulator: e, bare: spannerpb.NewSpannerClient(conn)})
	}
	return l
}

// runAll runs the cells, many at a time, and returns their results in the order of the cells.
func (l *lab) runAll(cells []*cell) []cellResult {
	results := make([]cellResult, len(cells))
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	// Those that take long come first, so that nobody waits for them in the end.
	slices.SortStableFunc(order, func(a, b int) int { return cells[b].slow() - cells[a].slow() })
	next := make(chan int)
	gate := newPace(labCells)
	defer gate.close()
	var workers sync.WaitGroup
	for i := range labCells {
		workers.Go(func() {
			for at := range next {
				gate.enter()
				r := runCell(cells[at], l.emulators[i%len(l.emulators)])
				gate.leave()
				results[at] = r
				if r.err != nil {
					l.t.Errorf("%v: %v\n%s", r.cell, r.err, r.log)
				}
			}
		})
	}
	for _, at := range order {
		next <- at
	}
	close(next)
	workers.Wait()
	l.findLeaks(results)
	return results
}

// cellLabel marks the goroutines of a cell. What a goroutine starts has its labels.
const cellLabel = "matrix-cell"

func runCell(c *cell, b *cellEmulator) cellResult {
	r := cellResult{cell: c}
	began := time.Now()
	pprof.Do(context.Background(), pprof.Labels(cellLabel, fmt.Sprint(c)), func(ctx context.Context) {
		for r.log, r.err = c.run(ctx, b); errors.Is(r.err, errNotApplied) && r.again < tryAgain; r.again++ {
			r.log, r.err = c.run(ctx, b)
		}
	})
	r.took = time.Since(began)
	return r
}

// findLeaks waits for what the cells have started to end, and blames what is left on its cell.
func (l *lab) findLeaks(results []cellResult) {
	var left string
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for giveUp := time.Now().Add(20 * time.Second); time.Now().Before(giveUp); <-tick.C {
		var b bytes.Buffer
		require.NoError(l.t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		if left = b.String(); !strings.Contains(left, cellLabel) {
			break
		}
	}
	for i := range results {
		r := &results[i]
		if name := fmt.Sprintf("%q:%q", cellLabel, fmt.Sprint(r.cell)); strings.Contains(left, name) && r.err == nil {
			r.err = fmt.Errorf("goroutines are left")
			l.t.Errorf("%v: goroutines are left:\n%s", r.cell, left)
		}
	}
	for _, e := range l.emulators {
		require.Eventually(l.t, func() bool { return e.Front().Stats() == front.Stats{} }, 20*time.Second, 20*time.Millisecond,
			"transactions are left open: %+v", e.Front().Stats())
	}
}

// cellDatabase is the database of one cell, as seen from behind the front.
type cellDatabase struct {
	emulator *cellEmulator
	name     string
	session  string
}

func (b *cellEmulator) database(ctx context.Context) (*cellDatabase, error) {
	db := &cellDatabase{emulator: b, name: fmt.Sprintf("%s/databases/cell-%d", labInstance, b.databases.Add(1))}
	ddl := append([]string{testQueue.DDL(), effectsTable}, schema.Attempts{Queue: testQueue}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: testQueue}.Statements()...)
	if err := b.CreateDatabase(ctx, db.name, ddl...); err != nil {
		return nil, err
	}
	s, err := b.bare.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: db.name})
	if err != nil {
		return nil, err
	}
	db.session = s.GetName()
	return db, nil
}

func (db *cellDatabase) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.emulator.DropDatabase(ctx, db.name)
}

// read reads a table by its key. It is no SQL: that costs the emulator much more.
func (db *cellDatabase) read(ctx context.Context, table string, columns ...string) ([]*structpb.ListValue, error) {
	r, err := db.emulator.bare.Read(ctx, &spannerpb.ReadRequest{
		Session: db.session,
		Table:   table,
		Columns: columns,
		KeySet:  &spannerpb.KeySet{All: true},
	})
	return r.GetRows(), err
}

// left counts the messages in the queue.
func (db *cellDatabase) left(ctx context.Context) (int, error) {
	rows, err := db.read(ctx, "Q", "Id")
	return len(rows), err
}

// cellState is what stands in the database in the end.
type cellState struct {
	effects    map[string]string
	left, dead int
}

func (db *cellDatabase) state(ctx context.Context) (s cellState, err error) {
	effects, err := db.read(ctx, "Effects", "Id", "N")
	if err != nil {
		return s, err
	}
	s.effects = make(map[string]string)
	for _, row := range effects {
		s.effects[row.GetValues()[0].GetStringValue()] = row.GetValues()[1].GetStringValue()
	}
	letters, err := db.read(ctx, "QDeadLetters", "Id")
	if err != nil {
		return s, err
	}
	s.dead = len(letters)
	s.left, err = db.left(ctx)
	return s, err
}
