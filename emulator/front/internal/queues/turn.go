package queues

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// offer is what a receiver is about to be given.
type offer struct {
	to  *receiver
	ids []ledger.ID
}

// turn reads what is new and gives the waiting receivers what is ready, in one turn of the database. It reports whether
// another turn would find something to give at once.
func (r *reader) turn(ctx context.Context) (again bool, err error) {
	if !r.mayDeliver() || !r.wanted() {
		return false, nil
	}
	if err := r.readAll(ctx); err != nil {
		return false, err
	}
	r.mu.Lock()
	found := r.news
	r.news = news{}
	r.mu.Unlock()
	if !found.any() && !r.pending() {
		return false, nil
	}

	var offers []offer
	var rows map[ledger.ID]backing.Message
	err = r.view(ctx, func(ctx context.Context, q Querier, turn time.Time) error {
		if err := r.readNews(ctx, q, found, turn); err != nil {
			return err
		}
		if offers == nil { // nothing is taken twice if this runs twice
			offers = r.take()
		}
		rows, err = r.readRows(ctx, q, offers)
		return err
	})
	if err != nil {
		r.mu.Lock()
		r.news.add(found)
		r.mu.Unlock()
		for _, o := range offers {
			for _, id := range o.ids {
				o.to.taker.PutBack(id)
			}
		}
		return false, err
	}
	r.hand(offers, rows)
	return r.pending(), nil
}

// readAll reads the whole log once, before the first turn and outside of it, because a long log takes its time. What is
// committed meanwhile is the news of the turn.
func (r *reader) readAll(ctx context.Context) error {
	if r.log.read {
		return nil
	}
	var turn time.Time
	err := r.inTurn(ctx, func(context.Context, Querier) error {
		turn = time.Now()
		return nil
	})
	if err != nil && !errors.Is(err, errBusy) {
		return err
	}
	err = r.queues.store.Outside(ctx, r.db.name, func(ctx context.Context, q Querier) error {
		return r.readLog(ctx, q, time.Time{}, turn)
	})
	if err == nil {
		r.tellSelf(news{tail: true})
	}
	return err
}

func (r *reader) tellSelf(n news) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news.add(n)
}

// readNews reads what may be new. turn is a time within the turn in which it runs, or zero if it runs in none.
func (r *reader) readNews(ctx context.Context, q Querier, found news, turn time.Time) error {
	if found.all || r.log.jumped() || r.log.overgrown(r.ledger.Len()) {
		r.log.rewind()
		found.tail = true
	}
	if found.tail {
		if err := r.readLog(ctx, q, r.log.since(), turn); err != nil {
			return err
		}
	}
	if len(found.keys) == 0 {
		return nil
	}
	keys, err := decodeKeys(found.keys)
	if err != nil {
		return err
	}
	rs, err := q.Read(ctx, r.queue.ReadIdentities(keys))
	if err != nil {
		return err
	}
	messages, err := r.queue.LogMessages(rs)
	r.learn(messages)
	return err
}

func (r *reader) readLog(ctx context.Context, q Querier, since, turn time.Time) error {
	begun := r.ledger.BeginSweep()
	rs, err := q.Read(ctx, r.queue.ReadLog(since))
	if err != nil {
		return err
	}
	messages, err := r.queue.LogMessages(rs)
	if err != nil {
		return err
	}
	r.learn(messages)
	if since.IsZero() { // these are all that there are
		present := make(map[ledger.ID]struct{}, len(messages))
		for _, m := range messages {
			present[m.ID] = struct{}{}
		}
		r.ledger.Sweep(begun, func(id ledger.ID) bool { _, ok := present[id]; return ok })
	}
	r.log.done(since, turn, len(messages))
	return nil
}

func (r *reader) learn(messages []backing.Message) {
	for _, m := range messages {
		r.ledger.Learn(m.ID, m.Due.Add(-r.queues.opts.ClockOffset))
	}
}

// pending reports whether a waiting receiver could be given something.
func (r *reader) pending() bool {
	for _, rec := range r.waiting() {
		if rec.taker.Pending() {
			return true
		}
	}
	return false
}

func (r *reader) take() []offer {
	offers := []offer{}
	for _, rec := range r.waiting() {
		r.mu.Lock()
		n := rec.want
		r.mu.Unlock()
		if ids := rec.taker.Take(n); len(ids) > 0 {
			offers = append(offers, offer{to: rec, ids: ids})
		}
	}
	return offers
}

// readRows reads the rows of the offered messages. Those that are gone are missing from the answer.
func (r *reader) readRows(ctx context.Context, q Querier, offers []offer) (map[ledger.ID]backing.Message, error) {
	var encoded []string
	for _, o := range offers {
		for _, id := range o.ids {
			encoded = append(encoded, id.Key)
		}
	}
	rows := make(map[ledger.ID]backing.Message, len(encoded))
	if len(encoded) == 0 {
		return rows, nil
	}
	keys, err := decodeKeys(encoded)
	if err != nil {
		return nil, err
	}
	return rows, readInto(ctx, q, r.queue, keys, rows)
}

// readInto reads rows by key, in as many requests as their size demands.
func readInto(ctx context.Context, q Querier, queue *backing.Queue, keys []*structpb.ListValue, rows map[ledger.ID]backing.Message) error {
	rs, err := q.Read(ctx, queue.ReadMessages(keys))
	if status.Code(err) == codes.ResourceExhausted && len(keys) > 1 { // more than one answer can carry
		half := len(keys) / 2
		if err := readInto(ctx, q, queue, keys[:half], rows); err != nil {
			return err
		}
		return readInto(ctx, q, queue, keys[half:], rows)
	}
	if err != nil {
		return err
	}
	messages, err := queue.Messages(rs)
	for _, m := range messages {
		rows[m.ID] = m
	}
	return err
}

func decodeKeys(encoded []string) ([]*structpb.ListValue, error) {
	keys := make([]*structpb.ListValue, len(encoded))
	for i, e := range encoded {
		key, err := backing.DecodeKey(e)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// hand gives the receivers what they were offered and is still there.
func (r *reader) hand(offers []offer, rows map[ledger.ID]backing.Message) {
	// Learn every row first: a row of another generation is another message, and replaces the one that was offered.
	for _, m := range rows {
		r.learn([]backing.Message{m})
	}
	for _, o := range offers {
		var batch []backing.Message
		for _, id := range o.ids {
			if m, there := rows[id]; there {
				batch = append(batch, m)
			} else {
				r.ledger.Forget(id)
			}
		}
		if len(batch) > 0 {
			r.give(o.to, batch)
			r.served(o.to)
		}
	}
}
