package settle

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// abortedByServer says whether the database has aborted the transaction, also when the handler has made the error
// unrecognisable or made one up. Google's client remembers the abort but does not tell; it does refuse further statements
// of an aborted transaction before it looks at their context. So a statement whose context has ended already tells the
// two apart without a call: ABORTED by the client's own memory, or CANCELLED. Should a later client do otherwise, an abort
// is taken for an error of the handler, and the message is retried.
func abortedByServer(ctx context.Context, run backend.Tx) bool {
	if other, ok := run.(backend.Aborter); ok {
		return other.Aborted(ctx)
	}
	tx := run.Spanner()
	if tx == nil {
		return false
	}
	ended, end := context.WithCancel(context.Background())
	end()
	it := tx.Query(ended, spanner.Statement{SQL: "SELECT 1"})
	defer it.Stop()
	_, err := it.Next()
	return spanner.ErrCode(err) == codes.Aborted
}

// abortedError returns the error that makes Google's client run the function again: the handler's, if it still shows the
// database's own, since that one says how long to wait.
func abortedError(err error) error {
	if spanner.ErrCode(err) == codes.Aborted {
		return err
	}
	return status.Error(codes.Aborted, "spanqueue: the database aborted the transaction")
}
