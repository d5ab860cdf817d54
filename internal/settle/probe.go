package settle

import (
	"context"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"google.golang.org/grpc/codes"
)

// probeTimeout bounds one probe: the client would ask again for ever.
const probeTimeout = 10 * time.Second

// probe asks until it is answered whether the delivery is still in the queue, or until giveUp. A role that may not read
// the queue cannot ask: the delivery then counts as present, since running again is always safe.
func (x *Tx) probe(ctx context.Context, giveUp time.Time, pauses *Pauses) (backend.Presence, error) {
	for {
		timeout := min(probeTimeout, max(time.Until(giveUp), time.Millisecond))
		probeCtx, cancel := context.WithTimeout(ctx, timeout)
		presence, err := x.Queue.Probe(probeCtx, x.Delivery)
		cancel()
		switch {
		case err == nil:
			return presence, nil
		case spanner.ErrCode(err) == codes.PermissionDenied:
			return backend.Present, nil
		case !pauses.Wait(ctx, err, giveUp):
			return backend.Present, err
		}
	}
}

// isTransactionNotFound tells a transaction that the server has forgotten, after a restart or after its commit, from a
// row or table that is not there and may have "transaction" in its name. The code is the same; only the text differs.
func isTransactionNotFound(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "transaction") && !strings.Contains(text, "table")
}
