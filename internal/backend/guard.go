package backend

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
)

// poisonTable does not exist. Its name is what an operator reads in the commit's error.
const poisonTable = "spanqueue_message_not_held"

// Poison makes the transaction unable to commit. Its error is of no use: a transaction that is closed cannot commit
// anyway.
func Poison(tx SpannerTx) {
	_ = tx.BufferWrite([]*spanner.Mutation{spanner.Insert(poisonTable, []string{"Id"}, []any{int64(1)})})
}

// Exclusive are the options of a read whose rows others may neither change nor read for a change until the end of the
// transaction.
func Exclusive() *spanner.ReadOptions {
	return &spanner.ReadOptions{LockHint: sppb.ReadRequest_LOCK_HINT_EXCLUSIVE}
}

// Transaction fixes the isolation that guarded writes rely on, whatever the client's default.
func (o TxOptions) Transaction() spanner.TransactionOptions {
	return spanner.TransactionOptions{
		TransactionTag: Tag(o.Tag),
		IsolationLevel: sppb.TransactionOptions_SERIALIZABLE,
		ReadLockMode:   sppb.TransactionOptions_ReadWrite_PESSIMISTIC,
	}
}

// maxTag is the length that Spanner allows a tag.
const maxTag = 50

// Tag makes a transaction tag that Spanner takes: printable ASCII, 50 characters at most.
func Tag(text string) string {
	t := []byte(text)
	for i, c := range t {
		if c < ' ' || c > '~' {
			t[i] = '?'
		}
	}
	return string(t[:min(len(t), maxTag)])
}

// Spanner's own bounds of a TIMESTAMP.
var (
	minTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
)

// CheckDeliverTime refuses a due time that the database could not store. The zero time means now and passes.
func CheckDeliverTime(t time.Time) error {
	if !t.IsZero() && (t.Before(minTime) || t.After(maxTime)) {
		return fmt.Errorf("DeliverTime is %v, it must be in the years 1 to 9999", t)
	}
	return nil
}
