package main

import (
	"context"
	"encoding/json"
	"errors"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// handler makes the handler. The acknowledgement, which comes first in the same transaction, sees to it that one message
// takes effect once. The record of the operation sees to it that one operation does, when the producer sends it as a
// second message.
func handler(records *idempotency.Store) processor.Handler {
	return processor.Once{Store: records, Operation: operationOf, Effect: grantPoints, Replayed: answerAgain}
}

// grantPoints does the work of an operation. When it is called, the message has been acknowledged in tx; what is written
// here commits together with that and with the record, or not at all. So it is plain Spanner code, and it may run several
// times until one run commits.
func grantPoints(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		return idempotency.Result{}, processor.DeadLetter(err) // it will not get better; somebody should look at it
	}
	if flaw := g.flaw(); flaw != "" {
		return refuse(tx, g, flaw)
	}
	balance, err := addPoints(ctx, tx, g)
	switch {
	case errors.Is(err, errNoAccount):
		return refuse(tx, g, "no such account")
	case spanner.ErrCode(err) == codes.OutOfRange: // the statement failed; the transaction goes on
		return refuse(tx, g, "more than the balance can hold")
	case err != nil:
		return idempotency.Result{}, err
	}
	if err := write(tx, grantedAnswer(g, balance)); err != nil {
		return idempotency.Result{}, err
	}
	return receipt{g.Points, balance}.result()
}

// answerAgain answers the second message of an operation from the receipt of the first.
func answerAgain(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, found idempotency.Receipt) error {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		return err
	}
	first, err := parseReceipt(found)
	if err != nil {
		return err
	}
	if first == nil {
		return write(tx, refusedAnswer(g, "refused before"))
	}
	return write(tx, replayedAnswer(g, first))
}

func refuse(tx *spanner.ReadWriteTransaction, g grant, reason string) (idempotency.Result, error) {
	if err := write(tx, refusedAnswer(g, reason)); err != nil {
		return idempotency.Result{}, err
	}
	return receipt{}.result()
}

// flaw says what is wrong with the grant in itself, or "".
func (g grant) flaw() string {
	switch {
	case g.Account == "":
		return "no account"
	case g.Order == "":
		return "no order id"
	case g.Points <= 0:
		return "points not positive"
	}
	return ""
}

var errNoAccount = errors.New("no such account")

// addPoints adds to the balance, in the database, and returns the new one.
func addPoints(ctx context.Context, tx *spanner.ReadWriteTransaction, g grant) (int64, error) {
	rows := tx.Query(ctx, spanner.Statement{
		SQL:    "UPDATE Accounts SET Balance = Balance + @points WHERE Account = @account THEN RETURN Balance",
		Params: map[string]any{"points": g.Points, "account": g.Account},
	})
	defer rows.Stop()
	row, err := rows.Next()
	if err == iterator.Done {
		return 0, errNoAccount
	}
	if err != nil {
		return 0, err
	}
	var balance int64
	err = row.Column(0, &balance)
	return balance, err
}

func write(tx *spanner.ReadWriteTransaction, rows ...*spanner.Mutation) error {
	return tx.BufferWrite(rows)
}
