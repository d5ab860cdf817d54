package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"

	"github.com/spanqueue/spanqueue/queue"
)

// producerTag is on the producers' transactions.
const producerTag = "producer"

const (
	sendTimeout = time.Second
	sendPause   = 100 * time.Millisecond // at most, before it is tried again
)

// producers send messages, one for each queue, in chunks.
type producers struct {
	setting
	clients []*spanner.Client
	queues  map[string]*queue.Queue
	rooms   map[string]*room
	seed    uint64

	again   atomic.Int64 // tries after one whose outcome was not known
	settled atomic.Int64 // chunks that turned out to have been sent by an earlier try

	mu   sync.Mutex
	sent map[string]bool // by id: what is known to have been sent
}

func newProducers(on setting, seed uint64) *producers {
	p := &producers{
		setting: on,
		queues:  make(map[string]*queue.Queue),
		rooms:   make(map[string]*room),
		seed:    seed,
		sent:    make(map[string]bool),
	}
	for _, name := range queueNames {
		p.rooms[name] = newRoom(maxBacklog[name])
	}
	return p
}

// connect gives each producer a client: the bare emulator bears one transaction at a time from each.
func (p *producers) connect(ctx context.Context, database string, opts ...option.ClientOption) error {
	for _, name := range queueNames {
		client, err := newClient(ctx, database, opts...)
		if err != nil {
			return err
		}
		p.clients = append(p.clients, client)
		if p.queues[name], err = p.openQueue(client, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *producers) close() {
	for _, c := range p.clients {
		c.Close()
	}
}

// run sends until ctx ends, and then finishes what it has begun: a chunk that may have been sent is tried until it is known
// to be.
func (p *producers) run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for i, name := range queueNames {
		all.Go(func() error { return p.produce(ctx, name, rand.New(rand.NewPCG(p.seed, uint64(i)))) })
	}
	return all.Wait()
}

func (p *producers) produce(ctx context.Context, name string, dice *rand.Rand) error {
	for next := 0; ; {
		n := 1 + dice.IntN(maxBacklog[name]/4)
		if !p.rooms[name].take(ctx, n) {
			return nil
		}
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("%s%06d", name, next)
			next++
		}
		if err := p.sendChunk(context.WithoutCancel(ctx), name, ids, dice); err != nil {
			return err
		}
		p.rooms[name].sent(n)
	}
}

// sendChunk sends messages in one transaction that also notes them as sent: a try that finds the note knows that an
// earlier one has landed, also when the messages have been handled and are gone from the queue.
func (p *producers) sendChunk(ctx context.Context, name string, ids []string, dice *rand.Rand) error {
	var writes []*spanner.Mutation
	for _, id := range ids {
		send, err := p.queues[name].SendMutation(queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)})
		if err != nil {
			return err
		}
		writes = append(writes, send, spanner.Insert("Sent", []string{"Id"}, []any{id}))
	}
	giveUp := time.Now().Add(drainLimit)
	for {
		err := try(ctx, p.queues[name].Backend().Client(), writes)
		switch {
		case existsAlready(err):
			p.settled.Add(1)
			fallthrough
		case err == nil:
			p.note(ids)
			return nil
		case time.Now().After(giveUp):
			return fmt.Errorf("messages could not be sent for %v: %w", drainLimit, err)
		}
		p.again.Add(1)
		_ = sleep(ctx, time.Duration(dice.Int64N(int64(sendPause))))
	}
}

func try(ctx context.Context, client *spanner.Client, writes []*spanner.Mutation) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, err := client.Apply(ctx, writes, spanner.TransactionTag(producerTag))
	return err
}

func (p *producers) note(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.sent[id] = true
	}
}

func (p *producers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}
