package processor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/queue"
)

// delivery is one delivery on its way through the processor.
type delivery struct {
	held    *lease.Held
	message *queue.Message
	attempt *attempt
	started time.Time
}

// deliver takes a delivery to its outcome and lets go of it.
func (p *Processor) deliver(held *lease.Held) {
	p.inFlight.add(held)
	defer p.inFlight.release(held)
	d := &delivery{held: held, message: held.Message(), started: time.Now()}
	p.figures.delivered(p.execute(d))
}

func (p *Processor) execute(d *delivery) Outcome {
	var err error
	if d.attempt, err = p.attempts.begin(p.settling, d.message); err != nil {
		p.log(d, slog.LevelWarn, "the start could not be counted, so the handler was not started; the message is left to its lease", err)
		return Interrupted
	}
	d.message = d.attempt.shown(d.message)
	if d.attempt.startedTooOften() {
		return p.bury(d, reasonStarts, nil)
	}
	outcome := p.handler.run(p, d)
	if outcome == Interrupted || outcome == LeaseLost {
		if err := d.attempt.takeBack(p.settling); err != nil {
			p.log(d, slog.LevelWarn, "a start that came to nothing could not be taken back, and counts", err)
		}
	}
	return outcome
}

// settle runs a guarded transaction of the delivery and counts what it took.
func (p *Processor) settle(d *delivery, body func(context.Context, backend.Tx) error) settle.Verdict {
	x := settle.Tx{
		Queue:          p.queue.Backend(),
		Delivery:       d.message.Delivery(),
		Tag:            p.tag,
		Body:           body,
		MaxRuns:        p.config.MaxRuns,
		CommitTimeout:  p.config.CommitTimeout,
		ResolveTimeout: p.config.ResolveTimeout,
	}
	v := x.Run(p.settling)
	p.figures.settled(v)
	return v
}

// handled turns the verdict on a handler's transaction into the outcome, and sees to the message's fate if it failed.
func (p *Processor) handled(d *delivery, v settle.Verdict) Outcome {
	switch v.Result {
	case settle.Committed:
		d.attempt.ended()
		return Done
	case settle.Settled:
		d.attempt.ended()
		return d.settledLabel(p.queue.Backend().LeaseLength())
	case settle.NotHeld:
		p.log(d, slog.LevelDebug, "the message was gone before its handler started: a duplicate", nil)
		return Duplicate
	case settle.BodyFailed, settle.Refused:
		return p.failed(d, v.Err)
	case settle.Unresolved:
		p.log(d, slog.LevelError, "the outcome of the commit is unknown; the message is left to its lease, and a later holder finds out", v.Err)
		return Unresolved
	}
	p.log(d, slog.LevelWarn, "the database could not run the transaction; the message is left to its lease", v.Err)
	return Interrupted
}

// settledLabel says whether a delivery whose commit was lost and is gone now was ours to settle all along: whether the
// lease was still good. One that was never renewed is counted from the start; that is good enough for a label.
func (d *delivery) settledLabel(length time.Duration) Outcome {
	bound := d.held.Bound()
	if bound.IsZero() {
		bound = d.started.Add(length - length/10)
	}
	if time.Now().Before(bound) {
		return Done
	}
	return SettledElsewhere
}

// failed does what the handler's error asks for.
func (p *Processor) failed(d *delivery, err error) Outcome {
	var ended *endedError
	if errors.As(err, &ended) {
		switch {
		case errors.Is(ended.cause, ErrHandlerTimeout): // a failure like any other
		case errors.Is(ended.cause, lease.ErrLost):
			p.log(d, slog.LevelWarn, "the lease was lost while the handler ran", err)
			return LeaseLost
		case errors.Is(ended.cause, lease.ErrDeferralOver):
			p.log(d, slog.LevelWarn, "the time of the deferral is over; the message comes again", err)
			return Deferred
		default:
			p.log(d, slog.LevelInfo, "the stop interrupted the handler; the message is left to its lease", err)
			return Interrupted
		}
	}
	fate, marked := fateOf(err)
	switch fate.kind {
	case fateDiscard:
		p.log(d, slog.LevelWarn, "the handler discards the message", err)
		return p.finish(d, Discarded, d.attempt.forget)
	case fateSnooze:
		return p.postpone(d, Snoozed, fate.after, d.attempt.deferred())
	case fateDeadLetter:
		if p.attempts.ledger != nil {
			return p.bury(d, reasonHandler, err)
		}
	}
	next := d.attempt.failed()
	if p.attempts.exhausted(next) {
		return p.bury(d, reasonFailures, err)
	}
	if !marked || fate.kind == fateDeadLetter {
		fate.after = p.config.Backoff.delay(next.Failures)
	}
	p.log(d, slog.LevelWarn, "the handler failed; the message is sent again for later", err, slog.Duration("after", fate.after))
	return p.postpone(d, Retried, fate.after, next)
}

// log writes a line about a delivery. The message's key and due time are in it, its payload is not.
func (p *Processor) log(d *delivery, level slog.Level, text string, err error, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("queue", p.queue.Name()), slog.String("handler", p.config.Name), slog.String("message", d.message.String()))
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	p.config.Logger.LogAttrs(context.Background(), level, "spanqueue: "+text, attrs...)
}
