package table

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/boottime"
)

// ServerTime implements backend.Queue.
func (q *Queue) ServerTime(ctx context.Context) (time.Time, error) {
	if now, ok := q.clock.now(); ok {
		return now, nil
	}
	if _, err := q.askTime(ctx); err != nil {
		return time.Time{}, err
	}
	now, ok := q.clock.now()
	if !ok {
		return time.Time{}, fmt.Errorf("queue: the database's time was asked for and its answer took over a minute")
	}
	return now, nil
}

// querier is a transaction of any kind.
type querier interface {
	Query(context.Context, spanner.Statement) *spanner.RowIterator
}

// justPast returns a time that has just passed for the database. It asks in the given transaction, if it has to.
func (q *Queue) justPast(ctx context.Context, tx querier) (time.Time, error) {
	if past, ok := q.clock.justPast(); ok {
		return past, nil
	}
	sent := boottime.Now()
	stamp, err := currentTime(ctx, tx)
	if err == nil {
		q.clock.committed(stamp, sent)
	}
	return stamp, err
}

// askTime returns the database's time as it was when it answered.
func (q *Queue) askTime(ctx context.Context) (time.Time, error) {
	sent := boottime.Now()
	tx := q.client.Single()
	stamp, err := currentTime(ctx, tx)
	if err != nil {
		return stamp, err
	}
	if read, err := tx.Timestamp(); err == nil && read.After(stamp) {
		stamp = read // two clocks of the database: the later one is never behind either
	}
	q.clock.committed(stamp, sent)
	return stamp, nil
}

func currentTime(ctx context.Context, tx querier) (stamp time.Time, err error) {
	err = tx.Query(ctx, spanner.Statement{SQL: "SELECT CURRENT_TIMESTAMP()"}).Do(func(r *spanner.Row) error { return r.Columns(&stamp) })
	if err != nil {
		return stamp, fmt.Errorf("queue: the database's time: %w", err)
	}
	return stamp, nil
}
