package main

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"
)

// poll looks until it is so.
func poll(ctx context.Context, so func() (bool, error)) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if ok, err := so(); ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// untilRan waits for n more runs.
func (t *teller) untilRan(ctx context.Context, n int64) error {
	var before int64 = -1
	return poll(ctx, func() (bool, error) {
		var ran int64
		err := t.client.Single().Query(ctx, spanner.Statement{SQL: "SELECT COUNT(*) FROM Ran"}).Do(func(r *spanner.Row) error {
			return r.Columns(&ran)
		})
		if before < 0 {
			before = ran
		}
		return ran >= before+n, err
	})
}

// untilLate waits until every schedule's message has been due for so long, by the database's clock.
func (t *teller) untilLate(ctx context.Context, late time.Duration) error {
	return poll(ctx, func() (bool, error) {
		now, err := t.schedules.ServerTime(ctx)
		if err != nil {
			return false, err
		}
		messages, err := t.schedules.Peek(ctx, len(wanted))
		for _, m := range messages {
			if now.Sub(m.DeliverTime) < late {
				return false, err
			}
		}
		return true, err
	})
}
