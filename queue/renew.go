package queue

import (
	"context"
	"fmt"
)

// Renewal is the answer to one lease of a Renew call.
type Renewal struct {
	// Lease is the renewed lease, to be renewed by next time; that of a Spanner queue kills the one that was given. It is
	// the zero Lease when Renewed is false.
	Lease Lease
	// Renewed is false when the lease was not renewed. The message may have been acknowledged, or the lease may have
	// ended; in a queue table, ended and been followed by another's. In a Spanner queue there is a third case, which cannot
	// be told apart: the client executed the query a second time after its first answer was lost, and the lease lives on
	// under a token that nobody knows.
	Renewed bool
}

// Renew extends the given leases, all with as few calls as possible (one for up to 900), each to a full lease length from
// now by the database's clock, and returns an answer for each, in their order. A lease of a Spanner queue lasts 10 s, one
// of a queue table as long as LeaseLength says.
//
// After an error nothing is known: each lease may or may not have been renewed, and the token of a Spanner queue may be
// dead. A lease without a token is refused with ErrInvalid.
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
