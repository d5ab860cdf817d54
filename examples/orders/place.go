package main

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
)

// shop is what orders are handled with.
type shop struct {
	client         *spanner.Client
	steps, answers *queue.Queue
}

// order is what was ordered: the payload of the messages of all steps.
type order struct {
	Customer string `json:"customer"`
	Item     string `json:"item"`
	Count    int64  `json:"count"`
}

const (
	placed    = "placed"
	confirmed = "confirmed"
	soldOut   = "sold out"
)

// place writes the order and sends the message of its first step: both, or neither.
func (s shop) place(ctx context.Context, id string, o order) error {
	send, err := s.step(id, reserve, o)
	if err != nil {
		return err
	}
	_, err = s.client.Apply(ctx, []*spanner.Mutation{setStatus(id, placed), send})
	return err
}

func setStatus(id, status string) *spanner.Mutation {
	return spanner.InsertOrUpdate("Orders", []string{"OrderId", "Status"}, []any{id, status})
}
