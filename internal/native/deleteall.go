package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/api/iterator"
)

// maxTerms bounds what one statement of deleteAll compares and joins: the service takes 950 parameters and 1,000 function
// calls in a statement, and an = or an AND is a call.
const maxTerms = 900

// deleteAll takes out the deliveries by statements that say which they were.
func (q *Queue) deleteAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	chunk := maxTerms / (2 * (len(q.sql.keys) + 1))
	gone := make(map[string]bool, len(deliveries))
	for from := 0; from < len(deliveries); from += chunk {
		if err := q.deleteSome(ctx, tx, deliveries[from:min(from+chunk, len(deliveries))], gone); err != nil {
			return nil, err
		}
	}
	for i, d := range deliveries {
		id := deliveryID(d.Key, d.DeliverTime)
		if !gone[id] {
			missing = append(missing, i)
		}
		delete(gone, id) // the same delivery twice in one call is acknowledged once
	}
	return missing, nil
}

func (q *Queue) deleteSome(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery, gone map[string]bool) error {
	it := tx.Query(ctx, q.deleteStatement(deliveries))
	defer it.Stop()
	for {
		row, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return err
		}
		key, err := q.key.Read(row)
		if err != nil {
			return err
		}
		var at time.Time
		if err := row.Column(len(key), &at); err != nil {
			return err
		}
		gone[deliveryID(key, at)] = true
	}
}

// deliveryID names a delivery: a batch may hold an old delivery of a key beside the message that was sent anew under it.
func deliveryID(key spanner.Key, at time.Time) string {
	return fmt.Sprintf("%s %d.%d", rowcodec.ID(key), at.Unix(), at.Nanosecond())
}

// deleteStatement deletes several deliveries, each by its own key and DeliverTime, and returns both. It is one condition a
// delivery rather than a join with an array of structs, so that each is found by its key.
func (q *Queue) deleteStatement(deliveries []backend.Delivery) spanner.Statement {
	params := make(map[string]any)
	conditions := make([]string, len(deliveries))
	for i, d := range deliveries {
		conditions[i] = "(" + q.sql.where(d, fmt.Sprintf("d%d_", i), params) + ")"
	}
	return spanner.Statement{
		SQL: fmt.Sprintf("DELETE FROM %s WHERE %s THEN RETURN %s, %s", q.sql.queue, strings.Join(conditions, " OR "),
			strings.Join(q.sql.keys, ", "), quote(schema.DeliverTimeColumn)),
		Params: params,
	}
}
