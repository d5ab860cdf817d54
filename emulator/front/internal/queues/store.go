package queues

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Store is the database as the queues see it. Errors are gRPC statuses of the emulator, or of a context that ended.
// Its methods may be called from several goroutines.
type Store interface {
	// InTurn waits for the database's turn and runs f inside a read-write transaction of the emulator on a backend
	// session of its own, then rolls it back: reads there do not wait for the emulator's clock, and see every commit
	// that had its turn before. The transaction begins before f and costs nothing until f reads. f must not keep q.
	InTurn(ctx context.Context, database string, f func(ctx context.Context, q Querier) error) error
	// Outside runs f with single-use strong reads outside any turn.
	Outside(ctx context.Context, database string, f func(ctx context.Context, q Querier) error) error
	// Instance describes the instance that the database is, or will be, in.
	Instance(ctx context.Context, database string) (Instance, error)
	// KnowsQueues reports whether the emulator has queues itself. Then it keeps them, and this package keeps none.
	KnowsQueues(ctx context.Context) (bool, error)
}

// Querier reads. It fills in Session and Transaction of the requests it is given, and may do so in place.
type Querier interface {
	Read(ctx context.Context, req *spannerpb.ReadRequest) (*spannerpb.ResultSet, error)
	ExecuteSql(ctx context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error)
}

// Instance is what limits the number of queues.
type Instance struct {
	ProcessingUnits int64
	Databases       []string // full names
}
