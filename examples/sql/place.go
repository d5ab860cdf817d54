package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
)

// shop takes orders and grants points for them.
type shop struct {
	db    *sql.DB
	queue *queue.Queue
}

type order struct {
	id, customer string
	cents        int64
	refused      bool // the customer may not pay so much
}

// event is the payload of a message.
type event struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

var errRefused = errors.New("the card was refused")

// place writes the order and sends its message: both, or neither.
func (s shop) place(ctx context.Context, o order) error {
	payload, err := json.Marshal(event{o.customer, o.cents})
	if err != nil {
		return err
	}
	return spannerdriver.RunTransaction(ctx, s.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO Orders (OrderId, Customer, Cents) VALUES (@id, @customer, @cents)",
			sql.Named("id", o.id), sql.Named("customer", o.customer), sql.Named("cents", o.cents))
		if err != nil {
			return err
		}
		if err := queuesql.Send(ctx, tx, s.queue, queue.Outgoing{Key: spanner.Key{o.id}, Payload: payload}); err != nil {
			return err
		}
		if o.refused {
			return errRefused // the message has been sent, and will never be delivered
		}
		return nil
	})
}
