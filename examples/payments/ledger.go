package main

import (
	"context"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/examples/payments/gateway"
	"github.com/spanqueue/spanqueue/examples/payments/mailserver"
)

// ledger is what there is when a run is over, in the database and at the two
// servers outside, counted by trip: the trip is in the order, and no key of
// ours has a part in it.
type ledger struct {
	rides    map[string]int
	charges  map[string]int
	receipts map[string]int
	mails    map[string]int
	noted    map[string]int // mails that the database says have gone

	cents        map[string]int64 // charged
	deadLetters  int64
	inconsistent int64 // rides whose receipt names another charge, or none
}

func readLedger(ctx context.Context, client *spanner.Client, charges []gateway.Charge, mails []mailserver.Mail) (ledger, error) {
	l := ledger{
		rides: map[string]int{}, charges: map[string]int{}, receipts: map[string]int{}, mails: map[string]int{},
		noted: map[string]int{}, cents: map[string]int64{},
	}
	for _, c := range charges {
		l.charges[c.Trip]++
		l.cents[c.Trip] += c.Cents
	}
	for _, m := range mails {
		l.mails[m.Trip]++
	}
	tx := client.ReadOnlyTransaction()
	defer tx.Close()
	err := tx.Query(ctx, spanner.NewStatement("SELECT Trip, COUNT(*), SUM(Mailed) FROM Rides GROUP BY Trip")).Do(func(row *spanner.Row) error {
		var trip string
		var n, mailed int64
		err := row.Columns(&trip, &n, &mailed)
		l.rides[trip], l.noted[trip] = int(n), int(mailed)
		return err
	})
	if err != nil {
		return l, err
	}
	err = tx.Query(ctx, spanner.NewStatement("SELECT Trip, COUNT(*) FROM Receipts GROUP BY Trip")).Do(func(row *spanner.Row) error {
		var trip string
		var n int64
		err := row.Columns(&trip, &n)
		l.receipts[trip] = int(n)
		return err
	})
	if err != nil {
		return l, err
	}
	for sql, into := range map[string]*int64{
		"SELECT COUNT(*) FROM MailsDeadLetters": &l.deadLetters,
		`SELECT COUNT(*) FROM Rides AS r LEFT JOIN Receipts AS p ON p.RideId = r.RideId
			WHERE p.ChargeId IS NULL OR r.ChargeId IS NULL OR p.ChargeId != r.ChargeId`: &l.inconsistent,
	} {
		err := tx.Query(ctx, spanner.NewStatement(sql)).Do(func(row *spanner.Row) error { return row.Column(0, into) })
		if err != nil {
			return l, err
		}
	}
	return l, nil
}
