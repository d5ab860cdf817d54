package main

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

const (
	commitTimeout  = 500 * time.Millisecond
	handlerTimeout = 10 * time.Second
	callTimeout    = 5 * time.Second // longer than a worker is frozen, or its calls would fail by that
	drainTimeout   = 10 * time.Second
)

// What the handlers do besides their work, in shares of their runs.
const (
	failShare  = 0.01 // return an error of their own
	deferShare = 0.03 // of the calls: are deferred
	pointShare = 0.03 // of the calls: have a checkpoint
)

const (
	workTakes = 4 * time.Millisecond // at most, inside a transaction
	callTakes = 60 * time.Millisecond
)

var errOwn = errors.New("the handler's own error")

// processors are the three kinds of handlers, on a queue each: the way to use the library.
func processors(w *worker) ([]runner, error) {
	var all []runner
	for name, h := range map[string]struct {
		handler processor.Handler
		config  processor.Config
	}{
		txQueue:    {processor.Tx(w.one), processor.Config{Concurrency: 4, HandlerTimeout: handlerTimeout}},
		batchQueue: {processor.Batch(w.many), processor.Config{Concurrency: 2, HandlerTimeout: handlerTimeout, MaxBatch: 50, Linger: 20 * time.Millisecond}},
		callQueue:  {processor.Call[string]{Call: w.call, Settle: w.settle}, processor.Config{Concurrency: 8, HandlerTimeout: callTimeout}},
	} {
		q, err := w.openQueue(w.client, name)
		if err != nil {
			return nil, err
		}
		h.config.Name = w.Name
		h.config.CommitTimeout = commitTimeout
		h.config.DrainTimeout = drainTimeout
		h.config.Backoff = processor.Backoff{Min: 100 * time.Millisecond, Max: 500 * time.Millisecond}
		h.config.Logger = w.log
		p, err := processor.New(q, h.handler, h.config)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// one handles a message in its transaction.
func (w *worker) one(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	return w.many(ctx, tx, []*queue.Message{m})
}

// many handles messages in their transaction.
func (w *worker) many(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
	defer w.at(ms...)()
	defer w.noteOverrun(ctx)
	if err := addOne(ctx, tx, ms); err != nil {
		return err
	}
	if err := sleep(ctx, w.upTo(workTakes)); err != nil {
		return err
	}
	return w.maybeFail()
}

// call works outside of any transaction.
func (w *worker) call(ctx context.Context, h *lease.Held) (string, error) {
	m := h.Message()
	defer w.at(m)()
	defer w.noteOverrun(ctx)
	// A deferral that fails is none, and the work goes on for as long as it may.
	var err error
	switch {
	case w.chance(deferShare):
		w.tell(eventDeferred, m.Key[0].(string))
		err = h.Defer(ctx, callTimeout)
	case w.chance(pointShare):
		w.tell(eventDeferred, m.Key[0].(string))
		err = h.Checkpoint(ctx, append([]byte("once more: "), m.Payload...), callTimeout)
	}
	if err != nil && ctx.Err() != nil {
		return "", err
	}
	return "done", sleep(ctx, w.upTo(callTakes))
}

// settle writes what a call has led to.
func (w *worker) settle(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ string) error {
	return w.one(ctx, tx, m)
}

// at tells that a handler is at the messages, and returns what tells that it is not any more.
func (w *worker) at(ms ...*queue.Message) (left func()) {
	for _, m := range ms {
		w.tell(eventEnter, m.Key[0].(string))
	}
	return func() {
		for _, m := range ms {
			w.tell(eventLeave, m.Key[0].(string))
		}
	}
}

func (w *worker) maybeFail() error {
	if !w.chance(failShare) {
		return nil
	}
	w.ownFailures.Add(1)
	return errOwn
}

// noteOverrun counts a run that has taken longer than it may, as one of a frozen worker can: that is its own failure.
func (w *worker) noteOverrun(ctx context.Context) {
	if errors.Is(context.Cause(ctx), processor.ErrHandlerTimeout) {
		w.ownFailures.Add(1)
	}
}

// addOne is the effect: it adds 1 to the number of each message.
func addOne(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
	numbers := make(map[string]int64)
	keys := make([]spanner.Key, len(ms))
	for i, m := range ms {
		keys[i] = m.Key
	}
	err := tx.Read(ctx, "Effects", spanner.KeySetFromKeys(keys...), []string{"Id", "N"}).Do(func(row *spanner.Row) error {
		var id string
		var n int64
		err := row.Columns(&id, &n)
		numbers[id] = n
		return err
	})
	if err != nil {
		return err
	}
	writes := make([]*spanner.Mutation, len(ms))
	for i, m := range ms {
		id := m.Key[0].(string)
		writes[i] = spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{id, numbers[id] + 1})
	}
	return tx.BufferWrite(writes)
}

// sleep is work that watches its context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// existsAlready says whether a key was taken.
func existsAlready(err error) bool { return spanner.ErrCode(err) == codes.AlreadyExists }
