package settle

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/txstate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// abortedByServer says whether the database has aborted the transaction, also when the handler has made the error
// unrecognisable or made one up. Should Google's client no longer tell, an abort is taken for an error of the handler, and
// the message is retried.
func abortedByServer(ctx context.Context, run backend.Tx) bool {
	if other, ok := run.(backend.Aborter); ok {
		return other.Aborted(ctx)
	}
	tx := run.Spanner()
	return tx != nil && txstate.Aborted(tx)
}

// abortedError returns the error that makes Google's client run the function again: the handler's, if it still shows the
// database's own, since that one says how long to wait.
func abortedError(err error) error {
	if spanner.ErrCode(err) == codes.Aborted {
		return err
	}
	return status.Error(codes.Aborted, "spanqueue: the database aborted the transaction")
}
