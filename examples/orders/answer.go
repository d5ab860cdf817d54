package main

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// answer puts the answers to up to 50 customers into the outgoing mail, by one transaction.
func answer(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
	var mails []*spanner.Mutation
	for _, m := range ms {
		text, err := processor.JSON[string](m.Payload)
		if err != nil {
			return processor.ForMessage(m, processor.DeadLetter(err)) // the others go on without it
		}
		mails = append(mails, spanner.Insert("Mails", []string{"OrderId", "Text"}, []any{m.Key[0], text}))
	}
	return tx.BufferWrite(mails)
}
