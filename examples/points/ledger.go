package main

import (
	"context"

	"cloud.google.com/go/spanner"
)

// ledger is what stands in the database at the end.
type ledger struct {
	balances map[string]int64
	receipts map[operation]receipt
	answers  map[operation][]answer
}

// readLedger reads everything at one timestamp.
func readLedger(ctx context.Context, client *spanner.Client) (ledger, error) {
	l := ledger{
		balances: make(map[string]int64),
		receipts: make(map[operation]receipt),
		answers:  make(map[operation][]answer),
	}
	tx := client.ReadOnlyTransaction()
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
	err = tx.Read(ctx, "Receipts", spanner.AllKeys(), []string{"Account", "OrderId", "Kind", "Points", "Balance"}).Do(func(row *spanner.Row) error {
		var o operation
		var r receipt
		err := row.Columns(&o.Account, &o.Order, &o.Kind, &r.Points, &r.Balance)
		l.receipts[o] = r
		return err
	})
	if err != nil {
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
