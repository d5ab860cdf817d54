package queue

import (
	"context"
	"fmt"
)

// Renewal is the answer to one lease of a Renew call.
type Renewal struct {
	// Lease is the renewed lease; the one that was given is dead. It is the zero Lease when Renewed is false.
	Lease Lease
	// Renewed is false when the service gave no new token. The message may have been acknowledged, or the lease may have
	// ended, or the client executed the query a second time after its first answer was lost, in which case the lease
	// lives on under a token that nobody knows. The three cannot be told apart here.
	Renewed bool
}

// Renew extends the given leases, all with as few calls as possible (one for up to 900), each to a full lease length from
// now by the database's clock, and returns an answer for each, in their order. The lease length is the service's: 10 s.
//
// After an error nothing is known: each lease may or may not have been renewed, and its token may be dead.
func (q *Queue) Renew(ctx context.Context, leases ...Lease) ([]Renewal, error) {
	tokens := make([]string, len(leases))
	for i, l := range leases {
		if l.Token == "" {
			return nil, invalid("lease %d of Renew has no token: only received messages have one", i)
		}
		tokens[i] = l.Token
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	answers, err := q.backend.Renew(ctx, tokens)
	if err != nil {
		return nil, fmt.Errorf("queue: renew %d leases of %s: %w", len(leases), q.Name(), err)
	}
	renewals := make([]Renewal, len(leases))
	for i, t := range tokens {
		if a, ok := answers[t]; ok && a.Token != "" {
			renewals[i] = Renewal{Lease: Lease{Token: a.Token, End: a.LeaseEnd}, Renewed: true}
		}
	}
	return renewals, nil
}
