package fault

import "context"

// Exchange is a call as the front offers it to the actions: one RPC, or one row of a stream.
type Exchange interface {
	// Forward lets the call happen. Once its answer is there, and before any of it leaves, reply is called, if not
	// nil; what it returns, if not nil, goes out in place of the answer. A call whose client has left before the
	// answer was there makes no use of reply. For a row the answer has left when it was sent: reply is called after.
	Forward(ctx context.Context, reply func() error) error
	// Rollback ends the transaction that the call names, if any.
	Rollback(ctx context.Context)
	// Forget makes the front forget the transaction that the call names.
	Forget()
	// Cut closes the connection that the call came on.
	Cut()
}

// Run is how the front takes a call through the rules: it applies those that apply and returns the call's error. It
// is exported for the front alone.
func (s *Set) Run(ctx context.Context, c Call, x Exchange) error {
	if c.Row != nil {
		return s.run(ctx, s.list(), c, x)
	}
	ctx, leave, err := s.away.enter(ctx, c.Database)
	if err != nil {
		return err
	}
	defer leave()
	err = s.run(ctx, s.list(), c, x)
	if gone := s.away.cause(ctx); gone != nil {
		return gone
	}
	return err
}

func (s *Set) run(ctx context.Context, rules []*Handle, c Call, x Exchange) error {
	for i, h := range rules {
		if n, apply := h.decide(c); apply {
			return h.apply(ctx, n, c, &rest{x, s, rules[i+1:], c})
		}
	}
	return x.Forward(ctx, nil)
}

// rest is an Exchange with the rules behind the present one before it.
type rest struct {
	Exchange
	set   *Set
	rules []*Handle
	call  Call
}

func (r *rest) Forward(ctx context.Context, reply func() error) error {
	return r.set.run(ctx, r.rules, r.call, &replying{r.Exchange, reply})
}

// replying hands an outer rule's reply on to where the answer is made.
type replying struct {
	Exchange
	outer func() error
}

func (r *replying) Forward(ctx context.Context, reply func() error) error {
	return r.Exchange.Forward(ctx, func() error {
		if reply != nil {
			if err := reply(); err != nil {
				return err
			}
		}
		if r.outer != nil {
			return r.outer()
		}
		return nil
	})
}
