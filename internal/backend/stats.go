package backend

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// CountStats counts the rows of a queue, or of a queue table, by a strong read of all of them. name and due, the column of
// the due time, are quoted.
func CountStats(ctx context.Context, client *spanner.Client, name, due string) (Stats, error) {
	var s Stats
	// The clock is read once: a message is then either ready or delayed.
	sql := fmt.Sprintf("SELECT CURRENT_TIMESTAMP(), COUNTIF(%[1]s <= CURRENT_TIMESTAMP()), COUNTIF(%[1]s > CURRENT_TIMESTAMP()), MIN(%[1]s) FROM %[2]s",
		due, name)
	err := client.Single().Query(ctx, spanner.Statement{SQL: sql}).Do(func(r *spanner.Row) error {
		var now time.Time
		var oldest spanner.NullTime
		if err := r.Columns(&now, &s.Ready, &s.Delayed, &oldest); err != nil {
			return err
		}
		if oldest.Valid {
			s.OldestAge = max(0, now.Sub(oldest.Time))
		}
		return nil
	})
	return s, err
}
