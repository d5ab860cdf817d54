package main

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner"
)

// receipt is what the first message of an operation was told. It is kept for as long as the operation may be sent again.
type receipt struct {
	Points  int64 // that were granted
	Balance int64 // after that
}

// reader is a transaction of either kind.
type reader interface {
	ReadRow(ctx context.Context, table string, key spanner.Key, columns []string) (*spanner.Row, error)
}

// readReceipt returns nil when the operation has none.
func readReceipt(ctx context.Context, tx reader, o operation) (*receipt, error) {
	row, err := tx.ReadRow(ctx, "Receipts", o.key(), []string{"Points", "Balance"})
	if errors.Is(err, spanner.ErrRowNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r receipt
	return &r, row.ToStruct(&r)
}

// newReceipt is an Insert: should two transactions try to write the same receipt, the second cannot commit.
func newReceipt(g grant, balance int64) *spanner.Mutation {
	return spanner.Insert("Receipts",
		[]string{"Account", "OrderId", "Kind", "Points", "Balance"},
		[]any{g.Account, g.Order, g.Kind, g.Points, balance})
}
