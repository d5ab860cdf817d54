package native

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
)

// renewChunk is how many leases one statement renews: the service takes 950 parameters in one statement.
const renewChunk = 900

// Renew implements backend.Queue.
func (q *Queue) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	answers := make(map[string]backend.Renewal, len(tokens))
	for len(tokens) > 0 {
		n := min(len(tokens), renewChunk)
		if err := q.renewChunk(ctx, tokens[:n], answers); err != nil {
			return nil, err
		}
		tokens = tokens[n:]
	}
	return answers, nil
}

func (q *Queue) renewChunk(ctx context.Context, tokens []string, answers map[string]backend.Renewal) error {
	names := make([]string, len(tokens))
	params := make(map[string]any, len(tokens))
	for i, t := range tokens {
		name := fmt.Sprintf("t%d", i)
		names[i], params[name] = "@"+name, t
	}
	sql := fmt.Sprintf("SELECT SpannerOldLeaseToken, SpannerNewLeaseToken, SpannerLeaseExpirationTimestamp FROM RENEWLEASE_%s(lease_tokens => [%s])",
		q.sql.name, strings.Join(names, ", "))
	sent := boottime.Now()
	return q.client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: params}).Do(func(row *spanner.Row) error {
		var old, token spanner.NullString
		var end spanner.NullTime
		if err := row.Columns(&old, &token, &end); err != nil {
			return fmt.Errorf("queue: a row of RENEWLEASE_%s: %w", q.definition.Name, err)
		}
		answers[old.StringVal] = backend.Renewal{Token: token.StringVal, LeaseEnd: end.Time}
		if token.Valid && end.Valid {
			q.clock.Observe(end.Time.Add(-q.leaseLength), sent)
		}
		return nil
	})
}

// ServerTime implements backend.Queue.
func (q *Queue) ServerTime(ctx context.Context) (time.Time, error) {
	if now, ok := q.clock.Now(); ok {
		return now, nil
	}
	sent := boottime.Now()
	err := q.client.Single().Query(ctx, spanner.Statement{SQL: "SELECT CURRENT_TIMESTAMP()"}).Do(func(row *spanner.Row) error {
		var stamp time.Time
		if err := row.Columns(&stamp); err != nil {
			return err
		}
		q.clock.Observe(stamp, sent)
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	now, ok := q.clock.Now()
	if !ok {
		return time.Time{}, fmt.Errorf("queue: the database's time was asked for and its answer took over a minute")
	}
	return now, nil
}
