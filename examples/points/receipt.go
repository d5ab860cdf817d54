package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/queue"
)

// receipt is what the first message of an operation was told: the result that its record keeps for as long as the
// operation may be sent again. It is zero when the first message was refused.
type receipt struct {
	Points  int64 `json:"points"`  // that were granted
	Balance int64 `json:"balance"` // after that
}

// operationOf says which operation a message asks for, and what it asks for: another amount under the same operation is
// not a repetition. The scope is set here, and is nothing that a payload could say.
func operationOf(m *queue.Message) (idempotency.Operation, idempotency.Fingerprint, error) {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		return idempotency.Operation{}, idempotency.Fingerprint{}, err
	}
	fingerprint, err := idempotency.FingerprintOf(g)
	return g.record(), fingerprint, err
}

// record names the operation's record.
func (o operation) record() idempotency.Operation {
	key, err := json.Marshal(o) // as JSON, so that no two operations share a key
	if err != nil {
		panic(err) // three strings can be marshalled
	}
	return idempotency.Operation{Scope: "shop", Name: "grant points", Key: string(key)}
}

func (r receipt) result() (idempotency.Result, error) {
	body, err := json.Marshal(r)
	return idempotency.Result{Type: "application/json", Body: body}, err
}

// readReceipt returns nil when the operation has none.
func readReceipt(ctx context.Context, records *idempotency.Store, o operation) (*receipt, error) {
	found, err := records.Lookup(ctx, o.record())
	if errors.Is(err, idempotency.ErrNoRecord) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseReceipt(found)
}

// parseReceipt returns nil for that of a refusal.
func parseReceipt(found idempotency.Receipt) (*receipt, error) {
	var r receipt
	if err := json.Unmarshal(found.Body, &r); err != nil {
		return nil, err
	}
	if r == (receipt{}) {
		return nil, nil
	}
	return &r, nil
}
