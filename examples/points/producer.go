package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/queue"
)

const (
	producerBatch = 100
	producerPause = 25 * time.Millisecond
)

// producer is the shop that sends the purchases. For a third of them it gets no answer, and does what one does then: it
// sends them again. Most of the first messages have been handled by that time; the queue knows nothing of them any more
// and takes the second for a new message.
type producer struct {
	client  *spanner.Client
	queue   *queue.Queue
	records *idempotency.Store
	grants  []grant

	noAnswer map[operation]bool    // those to send again
	hurried  map[operation]bool    // the few of them that are sent again at once
	sent     map[operation]int     // how often so far
	waiting  []grant               // to be sent again, once the message before has been acknowledged
	first    map[operation]receipt // the receipt, as it was before the operation was sent again

	messages atomic.Int64 // sent so far; read by others while run runs
}

func newProducer(db *database, d data, e expectation, seed uint64) *producer {
	p := &producer{
		client:   db.client,
		queue:    db.queue,
		records:  db.records,
		grants:   d.grants,
		noAnswer: make(map[operation]bool),
		hurried:  make(map[operation]bool),
		sent:     make(map[operation]int),
		first:    make(map[operation]receipt),
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	for _, g := range d.grants {
		// A refusal is an answer too, and is sent once: what is refused must be refused once.
		if points, good := e.points[g.operation]; good && points == g.Points && draw.IntN(3) == 0 {
			p.noAnswer[g.operation] = true
			p.hurried[g.operation] = draw.IntN(10) == 0
		}
	}
	return p
}

// total is how many messages run sends.
func (p *producer) total() int { return len(p.grants) + len(p.noAnswer) }

// run sends everything and returns when the last message is in the queue.
func (p *producer) run(ctx context.Context) error {
	for batch := range slices.Chunk(p.grants, producerBatch) {
		if err := p.sendBatch(ctx, batch); err != nil {
			return err
		}
		if err := p.sendAgain(ctx); err != nil {
			return err
		}
	}
	for len(p.waiting) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(producerPause):
		}
		if err := p.sendAgain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch sends the grants for the first time.
func (p *producer) sendBatch(ctx context.Context, batch []grant) error {
	var first, hurried []grant
	for _, g := range batch {
		switch {
		case p.sent[g.operation] > 0: // the file has the order once more
			p.waiting = append(p.waiting, g)
			continue
		case p.hurried[g.operation]:
			hurried = append(hurried, g)
			p.sent[g.operation]++
		case p.noAnswer[g.operation]:
			p.waiting = append(p.waiting, g)
		}
		first = append(first, g)
		p.sent[g.operation]++
	}
	if err := p.send(ctx, first); err != nil {
		return err
	}
	return p.send(ctx, hurried)
}

// sendAgain sends those that wait for it and whose message before has been acknowledged by now.
func (p *producer) sendAgain(ctx context.Context) error {
	queued, err := p.queued(ctx)
	if err != nil {
		return err
	}
	var now, later []grant
	for _, g := range p.waiting {
		if queued[g.operation] {
			later = append(later, g)
			continue
		}
		queued[g.operation] = true // one message of an operation at a time
		now = append(now, g)
		p.sent[g.operation]++
		r, err := readReceipt(ctx, p.records, g.operation)
		if err != nil {
			return err
		}
		if r != nil && r.Points == g.Points {
			p.first[g.operation] = *r
		}
	}
	p.waiting = later
	return p.send(ctx, now)
}

// queued says which of the waiting operations have a message in the queue. One that was sent and is not there any more
// has been acknowledged.
func (p *producer) queued(ctx context.Context) (map[operation]bool, error) {
	keys := make([]spanner.Key, len(p.waiting))
	for i, g := range p.waiting {
		keys[i] = g.key()
	}
	queued := make(map[operation]bool)
	rows := p.client.Single().Read(ctx, purchases.Name, spanner.KeySetFromKeys(keys...), []string{"Account", "OrderId", "Kind"})
	err := rows.Do(func(row *spanner.Row) error {
		var o operation
		err := row.Columns(&o.Account, &o.Order, &o.Kind)
		queued[o] = true
		return err
	})
	return queued, err
}

// send sends one message for each grant. With OrIgnore it does nothing for a message that is in the queue already, so it
// may be called again after an error, whatever became of the call before.
func (p *producer) send(ctx context.Context, grants []grant) error {
	messages := make([]queue.Outgoing, len(grants))
	for i, g := range grants {
		payload, err := json.Marshal(g)
		if err != nil {
			return err
		}
		messages[i] = queue.Outgoing{Key: g.key(), Payload: payload}
	}
	if err := p.queue.Send(ctx, messages, queue.OrIgnore()); err != nil {
		return err
	}
	p.messages.Add(int64(len(grants)))
	return nil
}
