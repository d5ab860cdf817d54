package main

import (
	"context"
	"encoding/json"
	"errors"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// grantPoints is the handler. When it is called, the message has been acknowledged in tx; what is written here commits
// together with that, or not at all. So it is plain Spanner code, and it may run several times until one run commits.
//
// The acknowledgement sees to it that one message takes effect once. The receipt sees to it that one operation does,
// when the producer sends it as a second message.
func grantPoints(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		return processor.DeadLetter(err) // it will not get better; somebody should look at it
	}
	if flaw := g.flaw(); flaw != "" {
		return write(tx, refusedAnswer(g, flaw))
	}

	first, err := readReceipt(ctx, tx, g.operation)
	switch {
	case err != nil:
		return err
	case first != nil && first.Points != g.Points:
		return write(tx, refusedAnswer(g, "other points than the first time"))
	case first != nil:
		return write(tx, replayedAnswer(g, first))
	}

	balance, err := addPoints(ctx, tx, g)
	switch {
	case errors.Is(err, errNoAccount):
		return write(tx, refusedAnswer(g, "no such account"))
	case spanner.ErrCode(err) == codes.OutOfRange: // the statement failed; the transaction goes on
		return write(tx, refusedAnswer(g, "more than the balance can hold"))
	case err != nil:
		return err
	}
	return write(tx, newReceipt(g, balance), grantedAnswer(g, balance))
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
