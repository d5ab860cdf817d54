package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"cloud.google.com/go/spanner"
)

// ledger is what the database says when all is done.
type ledger struct {
	status map[string]string   // of each order
	mails  map[string][]string // the texts that went out for each order
	stock  map[string]int64
	owed   map[string]int64
}

func (s shop) readLedger(ctx context.Context) (ledger, error) {
	l := ledger{map[string]string{}, map[string][]string{}, map[string]int64{}, map[string]int64{}}
	tx := s.client.ReadOnlyTransaction() // all of one moment
	defer tx.Close()
	read := func(sql string, f func(*spanner.Row) error) error {
		return tx.Query(ctx, spanner.Statement{SQL: sql}).Do(f)
	}
	var name, text string
	var n int64
	return l, errors.Join(
		read("SELECT OrderId, Status FROM Orders", func(r *spanner.Row) error {
			err := r.Columns(&name, &text)
			l.status[name] = text
			return err
		}),
		read("SELECT OrderId, Text FROM Mails", func(r *spanner.Row) error {
			err := r.Columns(&name, &text)
			l.mails[name] = append(l.mails[name], text)
			return err
		}),
		read("SELECT Item, InStock FROM Stock", func(r *spanner.Row) error {
			err := r.Columns(&name, &n)
			l.stock[name] = n
			return err
		}),
		read("SELECT Customer, Owed FROM Customers", func(r *spanner.Row) error {
			err := r.Columns(&name, &n)
			l.owed[name] = n
			return err
		}),
	)
}

func (l ledger) print(out io.Writer) {
	count := map[string]int{}
	for _, status := range l.status {
		count[status]++
	}
	fmt.Fprintf(out, "\norders   %d confirmed, %d sold out\nstock   ", count[confirmed], count[soldOut])
	for _, name := range slices.Sorted(maps.Keys(l.stock)) {
		fmt.Fprintf(out, " %s %d", name, l.stock[name])
	}
	fmt.Fprint(out, "\nowed    ")
	for _, name := range slices.Sorted(maps.Keys(l.owed)) {
		fmt.Fprintf(out, " %s %d.%02d", name, l.owed[name]/100, l.owed[name]%100)
	}
	fmt.Fprintln(out)
}

// judge compares with what was ordered, and returns an error for each thing that is not as it must be. Which of the orders
// got the last cups is left to chance; all else follows from the orders.
func (l ledger) judge(orders map[string]order) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	prices := maps.Clone(catalogue)
	maps.Copy(prices, forgotten)
	stock, owed := map[string]int64{}, map[string]int64{}
	for name, i := range prices {
		stock[name] = i.inStock
	}
	for id, o := range orders {
		if mails := l.mails[id]; len(mails) != 1 {
			wrong("order %s: %d mails went out, must be 1", id, len(mails))
		}
		switch l.status[id] {
		case confirmed:
			stock[o.Item] -= o.Count
			owed[o.Customer] += o.Count * prices[o.Item].cents
		case soldOut:
			if l.stock[o.Item] >= o.Count {
				wrong("order %s: sold out, and there are %d of %d × %s", id, l.stock[o.Item], o.Count, o.Item)
			}
		default:
			wrong("order %s: its status is %q", id, l.status[id])
		}
	}
	for name, must := range stock {
		if l.stock[name] != must || must < 0 {
			wrong("stock of %s: %d, must be %d", name, l.stock[name], must)
		}
	}
	for _, name := range customers {
		if l.owed[name] != owed[name] {
			wrong("%s owes %d, must be %d", name, l.owed[name], owed[name])
		}
	}
	if len(l.status) != len(orders) {
		wrong("%d orders, must be %d", len(l.status), len(orders))
	}
	return errors.Join(errs...)
}
