package expiry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Store is the databases as the Sweeper sees them. Errors are gRPC statuses.
type Store interface {
	// HasPolicies reports whether the database is of a dialect whose policies this package reads.
	HasPolicies(ctx context.Context, database string) (bool, error)
	// Query runs a single-use strong read, outside of any turn.
	Query(ctx context.Context, database string, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error)
	// InTurn waits for the database's turn and runs f in a read-write transaction, then commits the mutations that f
	// returns. Without any, or after an error, it rolls back.
	InTurn(ctx context.Context, database string, f func(query Query) ([]*spannerpb.Mutation, error)) error
}

// Query runs a query in the transaction of Store.InTurn.
type Query func(*spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error)

// Options tell how a Sweeper works.
type Options struct {
	// Interval is the time between two looks. If it is negative nothing is ever deleted. It must not be zero.
	Interval time.Duration
	// ClockOffset is added to the machine's clock.
	ClockOffset time.Duration
	// Logger gets what fails, and how many rows were deleted. It must be set.
	Logger *slog.Logger
}

const (
	// batchRows bounds a transaction.
	batchRows = 500
	// maxSkipped bounds how many rows that are refused are passed over in one look at a table.
	maxSkipped = 1000
)

// Sweeper deletes expired rows until it is closed. Its methods are safe for concurrent use.
type Sweeper struct {
	store Store
	opts  Options

	databases sync.Map // name -> struct{}

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New starts a Sweeper that knows no database yet. Close it.
func New(store Store, opts Options) *Sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sweeper{store: store, opts: opts, cancel: cancel}
	if opts.Interval > 0 {
		s.running.Go(func() { s.run(ctx) })
	}
	return s
}

// Notice makes the database one of those that are looked at. It is cheap for one that is already.
func (s *Sweeper) Notice(database string) {
	if _, known := s.databases.Load(database); !known {
		s.databases.Store(database, struct{}{})
	}
}

// Forget ends that.
func (s *Sweeper) Forget(database string) { s.databases.Delete(database) }

// Close ends the Sweeper and returns when it has ended.
func (s *Sweeper) Close() {
	s.cancel()
	s.running.Wait()
}

func (s *Sweeper) run(ctx context.Context) {
	tick := time.NewTicker(s.opts.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.databases.Range(func(database, _ any) bool {
			s.look(ctx, database.(string))
			return ctx.Err() == nil
		})
	}
}

// look goes through the tables of one database.
func (s *Sweeper) look(ctx context.Context, database string) {
	policies, err := s.policies(ctx, database)
	if status.Code(err) == codes.NotFound {
		s.Forget(database)
		return
	}
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.Debug("front: row deletion policies could not be read", "database", database, "error", err)
	}
	for _, p := range policies {
		rows, err := s.sweep(ctx, database, p)
		if rows > 0 {
			s.opts.Logger.Debug("front: expired rows were deleted", "database", database, "table", p.table, "rows", rows)
		}
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.Debug("front: expired rows could not be deleted", "database", database, "table", p.table, "error", err)
		}
	}
}

func (s *Sweeper) policies(ctx context.Context, database string) ([]policy, error) {
	if has, err := s.store.HasPolicies(ctx, database); err != nil || !has {
		return nil, err
	}
	policies, err := s.store.Query(ctx, database, &spannerpb.ExecuteSqlRequest{Sql: policiesQuery})
	if err != nil || len(policies.GetRows()) == 0 {
		return nil, err
	}
	keys, err := s.store.Query(ctx, database, &spannerpb.ExecuteSqlRequest{Sql: keysQuery})
	if err != nil {
		return nil, err
	}
	return readPolicies(policies, keys)
}

// sweep deletes what has expired in one table, and returns how many rows that were.
func (s *Sweeper) sweep(ctx context.Context, database string, p policy) (rows int, err error) {
	cutoff, some := p.cutoff(time.Now().Add(s.opts.ClockOffset))
	if !some {
		return 0, nil
	}
	found, err := s.store.Query(ctx, database, p.expired(cutoff, 1, 0))
	if err != nil || len(found.GetRows()) == 0 {
		return 0, err
	}
	limit, skipped := batchRows, 0
	for skipped < maxSkipped {
		n, err := s.batch(ctx, database, p, cutoff, limit, skipped)
		switch {
		case err == nil:
			rows += n
			if n < limit {
				return rows, nil
			}
			limit = min(2*limit, batchRows)
		case n == 0 || !refused(err):
			return rows, err
		case n > 1:
			limit = n / 2
		default:
			skipped++
		}
	}
	return rows, nil
}

// batch deletes at most limit rows, and returns how many it found.
func (s *Sweeper) batch(ctx context.Context, database string, p policy, cutoff time.Time, limit, skipped int) (found int, err error) {
	err = s.store.InTurn(ctx, database, func(query Query) ([]*spannerpb.Mutation, error) {
		rs, err := query(p.expired(cutoff, limit, skipped))
		found = len(rs.GetRows())
		return p.deletion(rs.GetRows()), err
	})
	return found, err
}

// refused tells errors about these rows, or this many, from those about the database.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.InvalidArgument, codes.OutOfRange, codes.AlreadyExists, codes.ResourceExhausted:
		return true
	}
	return false
}
