package table

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// renewChunk bounds one transaction of renewals.
const renewChunk = 1000

// Renew implements backend.Queue. A lease keeps its token: the token changes with the holder, and that is all that a late
// holder's writes are told by. So an acknowledgement that is under way holds its own against a renewal, and a renewal whose
// answer is lost costs nothing: the next one has the same token.
//
// A lease that has ended and that nobody has claimed since is renewed too: it is still the last one.
func (q *Queue) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	answers := make(map[string]backend.Renewal, len(tokens))
	for len(tokens) > 0 {
		n := min(len(tokens), renewChunk)
		if err := q.renewSome(ctx, tokens[:n], answers); err != nil {
			return nil, fmt.Errorf("queue: renew %d leases of %s: %w", n, q.table, err)
		}
		tokens = tokens[n:]
	}
	return answers, nil
}

func (q *Queue) renewSome(ctx context.Context, tokens []string, answers map[string]backend.Renewal) error {
	type lease struct {
		token, claim string
		key          spanner.Key
	}
	var leases []lease
	var keys []spanner.Key
	for _, t := range tokens {
		claim, key, err := q.tokens.split(t)
		if err != nil {
			continue // no token of this queue's: it gets no answer, as any dead one
		}
		leases = append(leases, lease{t, claim, key})
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil
	}
	now, err := q.ServerTime(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	var committing, end time.Time
	var renewed []string
	response, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		renewed = nil
		rows, err := q.readRows(ctx, tx, keys, q.columns.guard, nil)
		if err != nil {
			return err
		}
		end = now.Add(time.Since(asked)).Add(q.options.LeaseLength)
		var writes []*spanner.Mutation
		for _, l := range leases {
			if r, there := rows[rowcodec.ID(l.key)]; there && r.claim == l.claim {
				renewed = append(renewed, l.token)
				writes = append(writes, q.update(l.key, []string{q.columns.names.VisibleAt}, end))
			}
		}
		committing = boottime.Now()
		return tx.BufferWrite(writes)
	}, backend.TxOptions{Tag: "renew=" + q.table}.Transaction())
	if err != nil {
		return err
	}
	q.clock.committed(response.CommitTs, committing)
	for _, t := range renewed {
		answers[t] = backend.Renewal{Token: t, LeaseEnd: end}
	}
	return nil
}
