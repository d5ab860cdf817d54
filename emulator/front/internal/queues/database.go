package queues

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/roles"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// catalogue are the queues and roles of a database as they were declared at one moment. It does not change.
type catalogue struct {
	queues    map[string]*backing.Queue // by name in lower case
	roles     roles.Book
	rolesKept bool // the table that keeps them is there
}

var noQueues = &catalogue{}

// find returns the queue of that name, or nil. Case does not matter, as for tables.
func (c *catalogue) find(name string) *backing.Queue {
	if len(c.queues) == 0 {
		return nil
	}
	return c.queues[strings.ToLower(name)]
}

// database is what is known about one database.
type database struct {
	name string
	// loading is held by whoever reads the catalogue. It is a channel, so that waiting for it obeys a context.
	loading chan struct{}

	mu      sync.Mutex
	known   *catalogue // nil: to be read
	version int        // counts the changes of the schema
	readers map[string]*reader
	ended   error // set once the database is gone
}

func newDatabase(name string) *database {
	return &database{name: name, loading: make(chan struct{}, 1), readers: make(map[string]*reader)}
}

func (d *database) current() (*catalogue, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known, d.version
}

// load returns the catalogue, read now if it is not known. The error is the store's.
func (d *database) load(ctx context.Context, store Store) (*catalogue, error) {
	if c, _ := d.current(); c != nil {
		return c, nil
	}
	select {
	case d.loading <- struct{}{}:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-d.loading }()
	c, version := d.current()
	if c != nil {
		return c, nil
	}
	c, err := readCatalogue(ctx, store, d.name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.version == version { // else the schema changed meanwhile; the next one reads again
		d.known = c
	}
	return c, nil
}

// The names are in a case that both dialects know.
const catalogueQuery = "SELECT table_name, column_default FROM information_schema.columns WHERE table_name LIKE '" + backing.DeclarationPrefix + "%' OR table_name = '" + roles.Table + "'"

func readCatalogue(ctx context.Context, store Store, database string) (*catalogue, error) {
	c := &catalogue{}
	err := store.Outside(ctx, database, func(ctx context.Context, q Querier) error {
		c = &catalogue{queues: make(map[string]*backing.Queue)}
		rs, err := q.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Sql: catalogueQuery})
		if err != nil {
			return err
		}
		for _, row := range rs.GetRows() {
			c.add(row.GetValues()[0].GetStringValue(), row.GetValues()[1].GetStringValue())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// add takes in what a table declares by the default of its column. What is no declaration is somebody's own.
func (c *catalogue) add(table, columnDefault string) {
	if table != roles.Table {
		if queue, ok := backing.Declared(columnDefault); ok {
			c.queues[strings.ToLower(queue.Name())] = queue
		}
		return
	}
	if text, ok := tvf.StringLiteral(columnDefault); ok {
		if book, err := roles.Read(text); err == nil {
			c.roles, c.rolesKept = book, true
		}
	}
}

func (d *database) forgetCatalogue() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
	d.version++
	for _, r := range d.readers {
		r.schemaChanged()
	}
}

func (d *database) committed(touched string) {
	queue, news := readTouched(touched)
	d.mu.Lock()
	r := d.readers[queue]
	d.mu.Unlock()
	if r != nil {
		r.tell(news)
	}
}

// idle reports whether nothing would be lost by forgetting the database.
func (d *database) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.readers) == 0
}

// end ends all receivers with the error, for good.
func (d *database) end(err error) {
	d.mu.Lock()
	d.ended = err
	readers := d.readers
	d.readers = make(map[string]*reader)
	d.mu.Unlock()
	for _, r := range readers {
		r.end(err)
	}
}

// reader returns the reader of the queue, started by start if there is none yet.
func (d *database) reader(queue *backing.Queue, start func() *reader) (*reader, error) {
	key := strings.ToLower(queue.Name())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
		return nil, d.ended
	}
	r := d.readers[key]
	if r == nil {
		r = start()
		d.readers[key] = r
	}
	return r, nil
}

// existing returns the reader of the queue, or nil.
func (d *database) existing(queue *backing.Queue) *reader {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.readers[strings.ToLower(queue.Name())]
}

// leave takes a reader that ends out of the book.
func (d *database) leave(r *reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := strings.ToLower(r.queue.Name())
	if d.readers[key] == r {
		delete(d.readers, key)
	}
}

// errNoQueue is the refusal of a name that is no queue.
func errNoQueue(name string) error { return status.Errorf(codes.NotFound, "Queue not found: %s", name) }
