package main

import (
	"context"
	"encoding/json"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// state is how far a report has come.
type state struct {
	Next  int   // the part to make next, from 0
	Total int64 // of the parts that are made
}

// part makes one part of a report: it takes its time, and stops when the context ends.
func (s *state) part(ctx context.Context, takes time.Duration) error {
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx) // the lease is lost, the time is over, or the worker stops
	}
	s.Next++
	s.Total += int64(s.Next * s.Next)
	return nil
}

// progress is told after each part how many are made.
type progress func(made int)

// byRenewal keeps the message while the report is made: its lease is renewed in the background.
func byRenewal(o settings, tell progress) processor.Handler {
	return handler(func(ctx context.Context, _ *lease.Held) (s state, err error) {
		return s, s.rest(ctx, o, tell, nil)
	})
}

// byDeferral sends the message again, due after the longest time that the report can take, and then makes it. Nothing is
// renewed; if this process dies, the message is there again by then.
func byDeferral(o settings, tell progress) processor.Handler {
	return handler(func(ctx context.Context, h *lease.Held) (s state, err error) {
		if err := h.Defer(ctx, o.longest()); err != nil {
			return s, err
		}
		return s, s.rest(ctx, o, tell, nil)
	})
}

// byCheckpoints saves the state with the message after each part, due again when the longest time that a run can take is
// over.
func byCheckpoints(o settings, tell progress) processor.Handler {
	return handler(func(ctx context.Context, h *lease.Held) (s state, err error) {
		if saved := h.Message().Payload; len(saved) > 0 {
			if err := json.Unmarshal(saved, &s); err != nil {
				return s, processor.DeadLetter(err)
			}
		}
		return s, s.rest(ctx, o, tell, func() error {
			saved, err := json.Marshal(s)
			if err != nil {
				return err
			}
			return h.Checkpoint(ctx, saved, o.longest())
		})
	})
}

// rest makes the parts that are not made yet.
func (s *state) rest(ctx context.Context, o settings, tell progress, save func() error) error {
	for s.Next < o.parts {
		if err := s.part(ctx, o.part); err != nil {
			return err
		}
		if save != nil {
			if err := save(); err != nil {
				return err
			}
		}
		tell(s.Next)
	}
	return nil
}

// longest is the longest time that a run of the handler can take, and its timeout.
func (o settings) longest() time.Duration { return o.report() + 2*o.part }

// handler makes the report by the function and writes it in the transaction that takes the message from the queue.
func handler(make func(context.Context, *lease.Held) (state, error)) processor.Handler {
	return processor.Call[state]{
		Call: make,
		Settle: func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, s state) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Reports", []string{"Report", "Parts", "Total"},
				[]any{m.Key[0], s.Next, s.Total})})
		},
	}
}
