package main

import "cloud.google.com/go/spanner"

// answer is what one message was told. Every message that is handled leaves one.
type answer struct {
	operation
	Points  int64
	Outcome string
	Reason  string // of a refusal
	Balance int64  // after the grant; of a replay: after the first time; of a refusal: 0
}

const (
	granted  = "granted"
	replayed = "replayed" // the receipt was found: nothing changed
	refused  = "refused"
)

func grantedAnswer(g grant, balance int64) *spanner.Mutation {
	return newAnswer(answer{operation: g.operation, Points: g.Points, Outcome: granted, Balance: balance})
}

func replayedAnswer(g grant, first *receipt) *spanner.Mutation {
	return newAnswer(answer{operation: g.operation, Points: first.Points, Outcome: replayed, Balance: first.Balance})
}

func refusedAnswer(g grant, reason string) *spanner.Mutation {
	return newAnswer(answer{operation: g.operation, Points: g.Points, Outcome: refused, Reason: reason})
}

var answerColumns = []string{"Account", "OrderId", "Kind", "Points", "Outcome", "Reason", "Balance"}

func newAnswer(a answer) *spanner.Mutation {
	return spanner.Insert("Answers", answerColumns,
		[]any{a.Account, a.Order, a.Kind, a.Points, a.Outcome, a.Reason, a.Balance})
}
