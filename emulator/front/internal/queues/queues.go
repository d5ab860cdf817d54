package queues

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// Queues are the queues of all databases of one emulator. Make them with New and Close them. The methods may be called
// from several goroutines.
type Queues struct {
	store   Store
	opts    Options
	scans   scanCache
	plans   planCache
	limits  limits
	streams streams

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the readers

	mu        sync.Mutex
	closed    bool
	databases map[string]*database
}

// errClosed is what receivers get when the front ends.
var errClosed = status.Error(codes.Unavailable, "the front is closing")

// New makes queues over the store. It asks the store nothing yet.
func New(store Store, opts Options) (*Queues, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Queues{store: store, opts: opts, ctx: ctx, cancel: cancel, databases: make(map[string]*database)}, nil
}

// Close ends all receivers with UNAVAILABLE and returns when every goroutine of the package has ended. It does not wait
// for the calls of ServeStream, which end soon.
func (q *Queues) Close() {
	q.mu.Lock()
	q.closed = true
	databases := q.databases
	q.databases = make(map[string]*database)
	q.mu.Unlock()
	for _, d := range databases {
		d.end(errClosed)
	}
	q.cancel()
	q.wg.Wait()
}

// Dropped tells that the database is gone. Its receivers end with NOT_FOUND.
func (q *Queues) Dropped(name string) {
	q.mu.Lock()
	d := q.databases[name]
	delete(q.databases, name)
	q.mu.Unlock()
	if d != nil {
		d.end(status.Errorf(codes.NotFound, "Database not found: %s", name))
	}
}

// DDLChanged tells that the database's schema may have changed: its queues are read anew before they are used again,
// and the receivers of a queue that is gone end.
func (q *Queues) DDLChanged(name string) {
	q.mu.Lock()
	d := q.databases[name]
	q.mu.Unlock()
	if d != nil {
		d.forgetCatalogue()
	}
}

// Committed tells that a commit has landed for which a method of Queues has named these places. It does not block.
func (q *Queues) Committed(name string, touched []string) {
	if len(touched) == 0 {
		return
	}
	q.mu.Lock()
	d := q.databases[name]
	q.mu.Unlock()
	if d == nil {
		return
	}
	for _, t := range touched {
		d.committed(t)
	}
}

// database returns the state of a database that may or may not exist.
func (q *Queues) database(name string) (*database, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, errClosed
	}
	d := q.databases[name]
	if d == nil {
		d = newDatabase(name)
		q.databases[name] = d
	}
	return d, nil
}

// catalogue returns the queues of the database, reading them if need be. A database that does not exist has none.
func (q *Queues) catalogue(ctx context.Context, name string) (*database, *catalogue, error) {
	d, err := q.database(name)
	if err != nil {
		return nil, nil, err
	}
	c, err := d.load(ctx, q.store)
	if status.Code(err) == codes.NotFound {
		q.forget(d)
		return d, noQueues, nil
	}
	return d, c, err
}

// forget drops the state of a database that turned out not to exist, so that wrong names do not pile up.
func (q *Queues) forget(d *database) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.databases[d.name] == d && d.idle() {
		delete(q.databases, d.name)
	}
}

// now is the clock that the queues show.
func (q *Queues) now() time.Time { return time.Now().Add(q.opts.ClockOffset) }

// RewriteClock makes a statement that is passed through see the queues' clock: it replaces CURRENT_TIMESTAMP. With
// ClockOffset zero it returns the statement as it is.
func (q *Queues) RewriteClock(sql string) string {
	if q.opts.ClockOffset == 0 {
		return sql
	}
	return tvf.ReplaceWord(sql, "CURRENT_TIMESTAMP", backing.Now(q.opts.ClockOffset))
}
