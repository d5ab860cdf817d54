package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"
)

// The steps that an order goes through, one after the other. Each sends the message of the next one in the transaction that
// takes its own from the queue: the chain breaks nowhere, and no step is taken twice.
const (
	reserve = "reserve" // takes it from the stock
	charge  = "charge"  // writes down what the customer owes
)

// handler gives each message to the step of its kind.
func (s shop) handler() processor.Handler {
	return processor.Mux{
		Kind: processor.KeyColumn("Kind"),
		Routes: map[string]processor.Route{
			reserve: {
				Handler: processor.Typed(processor.JSON[order], s.reserve),
				Policy:  processor.Policy{MaxAttempts: 3, Backoff: processor.Backoff{Max: time.Second}},
			},
			charge: {Handler: processor.Typed(processor.JSON[order], s.charge)},
		},
	}.Handler()
}

func (s shop) reserve(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, o order) error {
	row, err := tx.ReadRow(ctx, "Stock", spanner.Key{o.Item}, []string{"InStock"})
	if spanner.ErrCode(err) == codes.NotFound {
		return fmt.Errorf("there is no %s in the catalogue", o.Item) // tried again, and at last dead-lettered
	}
	if err != nil {
		return err
	}
	var inStock int64
	if err := row.Columns(&inStock); err != nil {
		return err
	}
	id := idOf(m)
	if inStock < o.Count {
		// Not a failure of ours, but an answer to the customer.
		return s.finish(tx, id, soldOut, fmt.Sprintf("we are sorry, %d × %s is more than we have", o.Count, o.Item))
	}
	next, err := s.step(id, charge, o)
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{
		spanner.Update("Stock", []string{"Item", "InStock"}, []any{o.Item, inStock - o.Count}),
		next,
	})
}

func (s shop) charge(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, o order) error {
	_, err := tx.Update(ctx, spanner.Statement{
		SQL: `UPDATE Customers SET Owed = Owed + @count * (SELECT Cents FROM Stock WHERE Item = @item)
		      WHERE Customer = @customer`,
		Params: map[string]any{"count": o.Count, "item": o.Item, "customer": o.Customer},
	})
	if err != nil {
		return err
	}
	return s.finish(tx, idOf(m), confirmed, fmt.Sprintf("%d × %s is on its way", o.Count, o.Item))
}

// finish ends the order's way: its status is set, and an answer is sent.
func (s shop) finish(tx *spanner.ReadWriteTransaction, id, status, text string) error {
	payload, err := json.Marshal(text)
	if err != nil {
		return err
	}
	answer, err := s.answers.SendMutation(queue.Outgoing{Key: spanner.Key{id}, Payload: payload})
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{setStatus(id, status), answer})
}

// step makes the message of a step.
func (s shop) step(id, kind string, o order) (*spanner.Mutation, error) {
	payload, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return s.steps.SendMutation(queue.Outgoing{Key: spanner.Key{id, kind}, Payload: payload})
}

func idOf(m *queue.Message) string { return m.Key[0].(string) }
