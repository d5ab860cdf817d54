package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/internal/settle"
)

const (
	// claimTimeout bounds one claim, its search for a lost outcome included.
	claimTimeout = 10 * time.Second
	// lastLook is how long a claim goes on after its receiver has ended: what has been claimed is then given back.
	lastLook = time.Second
	// commitTimeout is how long the commit of a claim is waited for before it counts as lost: a quarter of the lease, but no
	// longer than this, and no shorter than shortestCommit.
	commitTimeout  = 3 * time.Second
	shortestCommit = 100 * time.Millisecond
)

// claimed is what became of a claim.
type claimed struct {
	granted []backend.Delivery
	lost    int       // how many of the candidates others have taken first
	parked  int       // how many were not the first in their lines
	asked   time.Time // the leases are not older than this
}

// claim takes the candidates that are still due and returns them under leases of their own, in the given order. past is
// what they were judged by.
//
// The claim's token is drawn once. Whenever what became of a commit is not known, the same claim is run again: rows that
// show its token are its own already, and whatever the first commit does later, the second has read the rows under
// exclusive locks, after it.
func (q *Queue) claim(ctx context.Context, candidates []candidate, past time.Time) (claimed, error) {
	ctx, cancel := lasting(ctx, claimTimeout)
	defer cancel()
	c := &claim{queue: q, token: newClaim(), candidates: candidates, past: past}
	for {
		err := c.run(ctx)
		switch {
		case err == nil:
			return c.last, nil
		case !c.sent || !settle.MayHaveLanded(err) || ctx.Err() != nil:
			return claimed{}, fmt.Errorf("queue: claim messages of %s: %w", q.table, err)
		}
		pause := time.NewTimer(rand.N(resolvePause))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// resolvePause is the longest pause before a claim whose outcome is unknown is run again.
const resolvePause = 50 * time.Millisecond

// lasting is ctx with a time of its own, and at least lastLook of it after ctx has ended.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastLook, cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() { stop(); cancel() }
}

var errCommitTimeout = errors.New("queue: the commit of a claim was not answered in time")

// claim is one claim on its way.
type claim struct {
	queue      *Queue
	token      string
	candidates []candidate
	past       time.Time

	sent bool // a commit was sent
	last claimed
}

func (c *claim) run(ctx context.Context) error {
	now, err := c.queue.ServerTime(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	answerIn := min(commitTimeout, max(c.queue.options.LeaseLength/4, shortestCommit))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var committing time.Time
	var timer *time.Timer
	keys := make([]spanner.Key, len(c.candidates))
	for i, candidate := range c.candidates {
		keys[i] = candidate.key
	}
	response, err := c.queue.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if timer != nil {
			timer.Stop()
		}
		rows, err := c.queue.readRows(ctx, tx, keys, c.queue.columns.all, backend.Exclusive())
		if err != nil {
			return err
		}
		var lines map[string][]row
		if c.queue.ordered() {
			if lines, err = c.queue.fronts(ctx, tx, c.inSight(rows), 1); err != nil {
				return err
			}
		}
		c.last = claimed{asked: time.Now()}
		writes, err := c.take(rows, lines, now.Add(c.last.asked.Sub(asked)))
		if err != nil {
			return err
		}
		committing, c.sent = boottime.Now(), true
		timer = time.AfterFunc(answerIn, func() { cancel(errCommitTimeout) })
		return tx.BufferWrite(writes)
	}, backend.TxOptions{Tag: "claim=" + c.queue.table}.Transaction())
	if timer != nil {
		timer.Stop()
	}
	if err == nil {
		c.queue.clock.committed(response.CommitTs, committing)
	}
	return err
}

// inSight returns the keys of the candidates that nobody else has taken.
func (c *claim) inSight(rows map[string]row) []spanner.Key {
	var keys []spanner.Key
	for _, r := range rows {
		if r.claim == c.token || !r.visible.After(c.past) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// take decides about each candidate by its row, and returns the writes. lines are the first rows of the candidates' lines;
// nil where messages are not ordered. now is a time that the database's is not behind of.
func (c *claim) take(rows map[string]row, lines map[string][]row, now time.Time) (writes []*spanner.Mutation, err error) {
	q, end := c.queue, now.Add(c.queue.options.LeaseLength)
	for _, candidate := range c.candidates {
		r, there := rows[rowcodec.ID(candidate.key)]
		switch {
		case there && r.claim == c.token: // a run before this one has landed
			r.visible = end
			writes = append(writes, q.update(r.key, []string{q.columns.names.VisibleAt}, end))
		case !there || r.visible.After(c.past):
			c.last.lost++
			continue
		case lines != nil && !q.isFirst(r, lines):
			c.last.parked++
			writes = append(writes, q.update(r.key, []string{q.columns.names.VisibleAt}, now.Add(parkFor)))
			continue
		default:
			writes = append(writes, c.lease(&r, end))
		}
		d, err := q.delivery(r)
		if err != nil {
			return nil, err
		}
		c.last.granted = append(c.last.granted, d)
	}
	if n := len(c.last.granted); n > 0 {
		c.last.granted[n-1].LastOfBatch = true
	}
	return append(writes, c.bringBack(lines)...), nil
}

// lease gives the message to this claim, and returns the write.
func (c *claim) lease(r *row, end time.Time) *spanner.Mutation {
	r.claim, r.visible = c.token, end
	r.attempts++
	names := c.queue.columns.names
	columns, values := []string{names.VisibleAt, names.LeaseToken, names.Attempts}, []any{end, r.claim, r.attempts}
	if !r.first.Valid {
		columns, values = append(columns, names.FirstAt), append(values, spanner.CommitTimestamp)
	}
	return c.queue.update(r.key, columns, values...)
}

// bringBack returns the writes that bring those into sight that are first in their lines and were left parked.
func (c *claim) bringBack(lines map[string][]row) []*spanner.Mutation {
	granted := make(map[string]bool, len(c.last.granted))
	for _, d := range c.last.granted {
		granted[rowcodec.ID(d.Key)] = true
	}
	var writes []*spanner.Mutation
	for _, rows := range lines {
		for _, r := range rows {
			if r.claim == "" && !r.due.After(c.past) && !granted[rowcodec.ID(r.key)] {
				writes = append(writes, c.queue.show(r, c.past))
			}
		}
	}
	return writes
}
