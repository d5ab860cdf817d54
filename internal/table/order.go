package table

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"golang.org/x/sync/errgroup"
)

// Where messages are ordered, those that share an ordering key stand in a line: the one in flight first, then the others by
// DueTime. Only the first of a line may be claimed. A claim that meets another one parks it, out of the sight of looks;
// whatever takes the first of a line away brings the next one back, in the same transaction. What left the line otherwise
// (deleted by hand, by its age, with its parent) brings nobody back: the next message of that key that a claim meets does,
// or else the parked ones come back by themselves.

const (
	// parkFor is how long a message stays out of sight when nothing brings it back.
	parkFor = 10 * time.Minute
	// maxParked bounds how many messages one claim looks at where messages are ordered: many may have to be parked.
	maxParked = 200
	// lineReads is how many lines are read at the same time.
	lineReads = 8
)

func (q *Queue) ordered() bool { return q.schema.OrderColumns > 0 }

// lineOf returns the ordering key of a key.
func (q *Queue) lineOf(key spanner.Key) spanner.Key { return key[:q.schema.OrderColumns] }

// choose says which of the candidates a claim tries to take: up to want, and where messages are ordered, of up to want
// lines, also those that are to be parked.
func (q *Queue) choose(candidates []candidate, want int, random float64) []candidate {
	if !q.ordered() {
		return block(candidates, want, random)
	}
	var leaders []candidate
	followers := make(map[string][]candidate)
	for _, c := range candidates {
		line := rowcodec.ID(q.lineOf(c.key))
		if _, ok := followers[line]; !ok {
			leaders = append(leaders, c)
		}
		followers[line] = append(followers[line], c)
	}
	var chosen []candidate
	for _, leader := range block(leaders, want, random) {
		chosen = append(chosen, followers[rowcodec.ID(q.lineOf(leader.key))]...)
	}
	return chosen[:min(len(chosen), max(maxParked, want))]
}

// front reads the first n of a line.
func (q *Queue) front(ctx context.Context, tx backend.SpannerTx, line spanner.Key, n int) ([]row, error) {
	var rows []row
	o := &spanner.ReadOptions{Index: q.schema.OrderIndexName(), Limit: n}
	err := tx.ReadWithOptions(ctx, q.table, line.AsPrefix(), q.columns.guard, o).Do(func(r *spanner.Row) error {
		read, err := q.readRow(r)
		rows = append(rows, read)
		return err
	})
	return rows, err
}

// fronts reads the first n of each of the lines that the keys stand in, by the line's ID.
func (q *Queue) fronts(ctx context.Context, tx backend.SpannerTx, keys []spanner.Key, n int) (map[string][]row, error) {
	lines := make(map[string]spanner.Key)
	for _, key := range keys {
		line := q.lineOf(key)
		lines[rowcodec.ID(line)] = line
	}
	ids := make([]string, 0, len(lines))
	for id := range lines {
		ids = append(ids, id)
	}
	found := make([][]row, len(ids))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(lineReads)
	for i, id := range ids {
		reads.Go(func() (err error) {
			found[i], err = q.front(ctx, tx, lines[id], n)
			return err
		})
	}
	err := reads.Wait()
	out := make(map[string][]row, len(ids))
	for i, id := range ids {
		out[id] = found[i]
	}
	return out, err
}

// isFirst says whether the row is the first in its line.
func (q *Queue) isFirst(r row, lines map[string][]row) bool {
	front := lines[rowcodec.ID(q.lineOf(r.key))]
	return len(front) > 0 && rowcodec.ID(front[0].key) == rowcodec.ID(r.key)
}

// show returns the mutation that brings a message back into sight.
func (q *Queue) show(r row, past time.Time) *spanner.Mutation {
	visible := past
	if r.due.After(past) {
		visible = r.due
	}
	return q.update(r.key, []string{q.columns.names.VisibleAt}, visible)
}

// next brings back those who come first in the lines that the gone ones leave, and returns how many they are.
func (q *Queue) next(ctx context.Context, tx backend.SpannerTx, gone []row) (int, error) {
	if !q.ordered() || len(gone) == 0 {
		return 0, nil
	}
	left := make(map[string]bool, len(gone))
	perLine := make(map[string]int)
	most := 0
	keys := make([]spanner.Key, len(gone))
	for i, r := range gone {
		line := rowcodec.ID(q.lineOf(r.key))
		perLine[line]++
		left[rowcodec.ID(r.key)], most, keys[i] = true, max(most, perLine[line]), r.key
	}
	// The rows that are gone by the commit still stand in their lines.
	lines, err := q.fronts(ctx, tx, keys, most+1)
	if err != nil {
		return 0, err
	}
	past, err := q.justPast(ctx, tx)
	if err != nil {
		return 0, err
	}
	var writes []*spanner.Mutation
	for _, rows := range lines {
		i := slices.IndexFunc(rows, func(r row) bool { return !left[rowcodec.ID(r.key)] })
		if i >= 0 && rows[i].claim == "" {
			writes = append(writes, q.show(rows[i], past))
		}
	}
	return len(writes), tx.BufferWrite(writes)
}

// inSequence gives messages that are sent at once, to one ordering key, now, times of their own, so that they stand in their
// line as they are given: the defaults of two rows may say the same.
func (q *Queue) inSequence(ctx context.Context, messages []backend.Outgoing) ([]backend.Outgoing, error) {
	perLine := make(map[string]int)
	several := false
	for _, m := range messages {
		line := rowcodec.ID(q.lineOf(m.Key))
		perLine[line]++
		several = several || perLine[line] > 1
	}
	if !several {
		return messages, nil
	}
	now, err := q.askTime(ctx)
	if err != nil {
		return nil, err
	}
	messages = slices.Clone(messages)
	for i := range messages {
		if messages[i].DeliverTime.IsZero() {
			messages[i].DeliverTime = now.Add(time.Duration(i-len(messages)) * time.Microsecond)
		}
	}
	return messages, nil
}
