package table

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
)

// candidate is a message that a read of the index has shown. Somebody else may claim it in this moment.
type candidate struct {
	cell
	key     spanner.Key
	visible time.Time
}

// sight is what a look has seen.
type sight struct {
	// due are messages that may be claimed, those of a higher priority first, then by time.
	due []candidate
	// past is a time that was over for the database when it answered: what due was judged by.
	past time.Time
	// next is when the next message becomes visible, as far as it was seen; zero: none was seen.
	next time.Time
}

const (
	// lookTimeout bounds one look: the client would ask again for ever.
	lookTimeout = 10 * time.Second
	// ahead is how many messages are read at least when a read goes beyond the present.
	ahead = 256
)

// look finds messages that may be claimed, about as many as are wanted, by strong reads of the index.
//
// After a look that found nothing, quiet, all cells are read at once and a poll interval beyond the present, so that the
// next look can be timed; that is one read. Otherwise the cells are read in random order, up to the present, until enough
// is found.
func (q *Queue) look(ctx context.Context, want int, quiet bool) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now, err := q.ServerTime(ctx)
	if err != nil {
		return sight{}, err
	}
	limit := q.crowd.window(want)
	if q.ordered() {
		limit = max(limit, maxParked)
	}
	shards := make([]int64, q.schema.ShardCount())
	for i := range shards {
		shards[i] = int64(i)
	}
	if cells := q.cells(shards); quiet || len(cells) == 1 {
		limit := limit
		if len(cells) > 1 {
			limit = max(limit, ahead)
		}
		s, cut, err := q.read(ctx, cells, now.Add(q.options.PollInterval), limit)
		if err != nil || len(s.due) > 0 || !cut || len(cells) == 1 {
			return s, err
		}
		// Messages of the first cells that are not due yet have filled the answer.
	}
	var all sight
	rand.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
	for _, group := range groups(shards) {
		s, _, err := q.read(ctx, q.cells(group), now, limit-len(all.due))
		if err != nil {
			return sight{}, err
		}
		all.due = append(all.due, s.due...)
		all.past, all.next = s.past, sooner(all.next, s.next)
		if len(all.due) >= want {
			break
		}
	}
	sortCandidates(all.due)
	return all, nil
}

// cells returns the cells of the shards.
func (q *Queue) cells(shards []int64) []cell {
	cells := make([]cell, 0, len(shards)*q.schema.PriorityCount())
	for _, s := range shards {
		for p := range q.schema.PriorityCount() {
			cells = append(cells, cell{s, int64(p)})
		}
	}
	return cells
}

// read reads the cells, each from its mark, by one call. cut says that the limit kept it from reading all of them.
func (q *Queue) read(ctx context.Context, cells []cell, until time.Time, limit int) (s sight, cut bool, err error) {
	began := time.Now()
	spans := make([]span, len(cells))
	ranges := make([]spanner.KeySet, len(cells))
	for i, c := range cells {
		spans[i] = span{cell: c, from: q.marks.from(c, began), until: until}
		ranges[i] = spans[i].keyRange(q.columns.names.Shard != "")
	}
	tx := q.client.Single()
	var found []candidate
	it := tx.ReadWithOptions(ctx, q.table, spanner.KeySets(ranges...), q.columns.lookup, &spanner.ReadOptions{Index: q.index, Limit: limit})
	err = it.Do(func(r *spanner.Row) error {
		c, err := q.readCandidate(r)
		found = append(found, c)
		return err
	})
	if err != nil {
		return sight{}, false, err
	}
	if stamp, err := tx.Timestamp(); err == nil {
		q.clock.read(stamp)
	}
	s.past, _ = q.clock.past() // known, or ServerTime has failed
	cut = len(found) == limit
	q.remember(spans, found, cut, s.past)
	for _, c := range found {
		if c.visible.After(s.past) {
			s.next = sooner(s.next, c.visible)
		} else {
			s.due = append(s.due, c)
		}
	}
	sortCandidates(s.due)
	return s, cut, nil
}

func (q *Queue) readCandidate(r *spanner.Row) (candidate, error) {
	var c candidate
	var err error
	if c.key, err = q.key.Read(r); err != nil {
		return c, err
	}
	into := []any{&c.priority, &c.visible, &c.shard}
	for i := len(c.key); i < r.Size(); i++ {
		if err := r.Column(i, into[i-len(c.key)]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// remember moves the low-water marks of the cells that the read has come to. found is in the order of the index.
func (q *Queue) remember(spans []span, found []candidate, cut bool, past time.Time) {
	first := make(map[cell]time.Time)
	for _, c := range found {
		if _, ok := first[c.cell]; !ok {
			first[c.cell] = c.visible
		}
	}
	now := time.Now()
	for _, s := range spans {
		if cut && s.cell.compare(found[len(found)-1].cell) > 0 {
			continue // behind the limit: nothing is known of it
		}
		q.marks.seen(s.cell, s.from, first[s.cell], past, now, rand.Float64())
	}
}

func sortCandidates(cs []candidate) {
	slices.SortStableFunc(cs, func(a, b candidate) int {
		if a.priority != b.priority {
			return int(a.priority - b.priority)
		}
		return a.visible.Compare(b.visible)
	})
}

// sooner returns the earlier of two times; a zero time is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
