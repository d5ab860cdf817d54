package txstate

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
)

// Aborted says whether the database has aborted tx, also when the function of
// the transaction has made the error unrecognisable, or has made one up. It
// makes no request and may be called until the function has returned.
//
// The client refuses the statements of a transaction that was aborted before it
// looks at their context. So a statement whose context has ended already tells:
// ABORTED from the client's own memory, or CANCELLED.
func Aborted(tx *spanner.ReadWriteTransaction) bool {
	ended, end := context.WithCancel(context.Background())
	end()
	rows := tx.Query(ended, spanner.Statement{SQL: "SELECT 1"})
	defer rows.Stop()
	_, err := rows.Next()
	return spanner.ErrCode(err) == codes.Aborted
}

// NeverSent says of the error of a Commit that the request could not be put
// into bytes, for a text that is not UTF-8: nothing has landed, and another try
// would end in the same way. The code is INTERNAL, which may mean anything else
// when a server answers it, so only the text tells.
func NeverSent(err error) bool {
	return spanner.ErrCode(err) == codes.Internal && strings.Contains(err.Error(), "error while marshaling")
}
