package native

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

// receiveSlack is how long after its own end a stream may stay silent before it is given up. The client re-opens a
// broken stream by itself, in silence and for ever: only the context's end brings it back to us.
const receiveSlack = 10 * time.Second

// Receive implements backend.Queue.
func (q *Queue) Receive(ctx context.Context, r backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(yield func(backend.Delivery, error) bool) {
		gaveUp := fmt.Errorf("the stream was to end after %v and did not: given up", r.MaxDuration)
		if at, ok := ctx.Deadline(); ok && time.Until(at) < r.MaxDuration+receiveSlack {
			gaveUp = context.DeadlineExceeded // it is the caller's
		}
		ctx, cancel := context.WithTimeoutCause(ctx, r.MaxDuration+receiveSlack, gaveUp)
		defer cancel()
		it := q.client.Single().Query(ctx, spanner.Statement{SQL: q.receiveSQL(r)})
		defer it.Stop()
		for {
			row, err := it.Next()
			if err == iterator.Done {
				return
			}
			if err != nil {
				switch {
				case ctx.Err() != nil:
					err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
				case spanner.ErrCode(err) == codes.DeadlineExceeded:
					// The server knows the deadline, and may answer that it has passed a moment before this process knows it.
					err = fmt.Errorf("%w: %w", gaveUp, err)
				}
				yield(backend.Delivery{}, fmt.Errorf("queue: receive from %s: %w", q.definition.Name, err))
				return
			}
			d, err := q.received(row)
			if err != nil {
				yield(backend.Delivery{}, fmt.Errorf("queue: a row of RECEIVE_%s: %w", q.definition.Name, err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (q *Queue) receiveSQL(r backend.ReceiveRequest) string {
	arguments := []string{fmt.Sprintf("max_duration => '%ds'", (r.MaxDuration+time.Second-1)/time.Second)}
	if r.MaxBatch > 0 {
		arguments = append(arguments, fmt.Sprintf("max_batch_size => %d", r.MaxBatch))
	}
	return fmt.Sprintf("SELECT %s, SpannerLeaseExpirationTimestamp, SpannerLeaseToken, SpannerLastBatchMessage FROM RECEIVE_%s(%s)",
		q.sql.selectList, q.sql.name, strings.Join(arguments, ", "))
}

func (q *Queue) received(row *spanner.Row) (backend.Delivery, error) {
	d, err := q.delivery(row)
	if err != nil {
		return d, err
	}
	var end spanner.NullTime
	var last spanner.NullBool
	n := len(q.columns)
	for i, into := range []any{&end, &d.Token, &last} {
		if err := row.Column(n+i, into); err != nil {
			return d, err
		}
	}
	d.LeaseEnd, d.LastOfBatch = end.Time, last.Bool
	return d, nil
}
