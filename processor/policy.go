package processor

import (
	"fmt"
	"time"
)

// Policy is what a kind of message may have of its own; zero fields are those of the processor's Config.
type Policy struct {
	// HandlerTimeout is as in Config.
	HandlerTimeout time.Duration
	// MaxAttempts is how many failures a message of the kind may have, at least 1. New refuses it where Config.MaxAttempts
	// is below zero. How often one may be started without an outcome goes by the Config.
	MaxAttempts int
	// Backoff is as in Config.
	Backoff Backoff
}

// policy returns the policy of the processor itself.
func (c Config) policy() Policy {
	return Policy{HandlerTimeout: c.HandlerTimeout, MaxAttempts: c.MaxAttempts, Backoff: c.Backoff}
}

// or fills the zero fields from the processor's policy.
func (p Policy) or(of Policy) Policy {
	if p.HandlerTimeout == 0 {
		p.HandlerTimeout = of.HandlerTimeout
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = of.MaxAttempts
	}
	if p.Backoff == (Backoff{}) {
		p.Backoff = of.Backoff
	}
	p.Backoff = p.Backoff.withDefaults()
	return p
}

// validate wants a policy as its owner gave it.
func (p Policy) validate() error {
	switch {
	case p.HandlerTimeout != 0 && p.HandlerTimeout < time.Millisecond:
		return fmt.Errorf("HandlerTimeout is %v, it must be at least 1ms (0 means the processor's)", p.HandlerTimeout)
	case p.MaxAttempts < 0:
		return fmt.Errorf("MaxAttempts is %d, it must be at least 1 (0 means the processor's)", p.MaxAttempts)
	case p.Backoff != (Backoff{}):
		return p.Backoff.withDefaults().validate()
	}
	return nil
}
