package main

import (
	"context"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/queue"
)

// ledger is what stands in the database at the end.
type ledger struct {
	balances map[string]int64
	receipts map[operation]receipt
	answers  map[operation][]answer
}

// readLedger reads everything when the work is done. grants says whose receipts to look up.
func readLedger(ctx context.Context, db *database, grants []grant) (ledger, error) {
	l := ledger{
		balances: make(map[string]int64),
		receipts: make(map[operation]receipt),
		answers:  make(map[operation][]answer),
	}
	tx := db.client.ReadOnlyTransaction()
	defer tx.Close()
	err := tx.Read(ctx, "Accounts", spanner.AllKeys(), []string{"Account", "Balance"}).Do(func(row *spanner.Row) error {
		var account string
		var balance int64
		err := row.Columns(&account, &balance)
		l.balances[account] = balance
		return err
	})
	if err != nil {
		return ledger{}, err
	}
	for _, g := range grants {
		r, err := readReceipt(ctx, db.records, g.operation)
		if err != nil {
			return ledger{}, err
		}
		if r != nil {
			l.receipts[g.operation] = *r
		}
	}
	if err := l.readDeadLetters(ctx, db.queue); err != nil {
		return ledger{}, err
	}
	err = tx.Read(ctx, "Answers", spanner.AllKeys(), answerColumns).Do(func(row *spanner.Row) error {
		var a answer
		err := row.Columns(&a.Account, &a.Order, &a.Kind, &a.Points, &a.Outcome, &a.Reason, &a.Balance)
		l.answers[a.operation] = append(l.answers[a.operation], a)
		return err
	})
	return l, err
}

// readDeadLetters reads what was refused because the operation had been asked for with other points: such a message is
// moved to the dead letters, for somebody to look at.
func (l ledger) readDeadLetters(ctx context.Context, q *queue.Queue) error {
	letters, err := q.DeadLetters().List(ctx, queue.DeadLetterFilter{Error: idempotency.ErrMismatch.Error()}, nil, 1000)
	for _, letter := range letters {
		o := operation{letter.Key[0].(string), letter.Key[1].(string), letter.Key[2].(string)}
		l.answers[o] = append(l.answers[o], answer{operation: o, Outcome: refused, Reason: "other points than the first time"})
	}
	return err
}

// count returns how many answers there are with that outcome.
func (l ledger) count(outcome string) int {
	n := 0
	for _, answers := range l.answers {
		n += len(withOutcome(answers, outcome))
	}
	return n
}

func withOutcome(answers []answer, outcome string) []answer {
	var some []answer
	for _, a := range answers {
		if a.Outcome == outcome {
			some = append(some, a)
		}
	}
	return some
}
