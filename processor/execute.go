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
	"go.opentelemetry.io/otel/trace"
)

// delivery is one delivery on its way through the processor.
type delivery struct {
	held    *lease.Held
	message *queue.Message
	attempt *attempt
	policy  Policy
	started time.Time
	outcome Outcome
	// refused: the handler has said what is to become of the message, and the database takes that for wrong, as for a
	// queue that takes no messages. It would come again for ever, so that its start counts.
	refused bool

	ctx  context.Context // settling, with the delivery's span
	span trace.Span
}

// deliver takes deliveries to their outcomes and lets go of them.
func (p *Processor) deliver(held []*lease.Held) {
	ds := make([]*delivery, len(held))
	for i, h := range held {
		p.inFlight.add(h)
		defer p.inFlight.release(h)
		ds[i] = &delivery{held: h, message: h.Message(), policy: p.config.policy(), started: time.Now()}
		ds[i].ctx, ds[i].span = p.telemetry.begin(p.settling)
	}
	if len(ds) == 1 && leaves(p.handler, p, ds[0]) {
		ds[0].attempt, ds[0].outcome = p.attempts.attempt(ds[0].message), Interrupted
	} else if ready := p.begin(ds); len(ready) > 0 {
		p.handler.run(p, ready)
	}
	p.takeBack(ds)
	for _, d := range ds {
		p.figures.delivered(d.outcome)
		p.telemetry.end(d)
	}
}

// begin counts the starts, and returns the deliveries that may be started; the others have their outcome.
func (p *Processor) begin(ds []*delivery) (ready []*delivery) {
	messages := make([]*queue.Message, len(ds))
	for i, d := range ds {
		messages[i] = d.message
	}
	attempts, err := p.attempts.begin(p.settling, messages)
	for i, d := range ds {
		d.attempt = attempts[i]
		d.message = d.attempt.shown(d.message)
		d.held.Number(d.message.Attempt)
		switch {
		case err != nil && d.attempt.uncounted:
			p.log(d, slog.LevelWarn, "the start could not be counted, so the handler was not started; the message is left to its lease", err)
			d.outcome = Interrupted
		case d.attempt.startedTooOften():
			d.outcome = p.bury(d, reasonStarts, nil)
		default:
			ready = append(ready, d)
		}
	}
	return ready
}

// takeBack undoes the counts of starts that were nobody's attempt. All together are waited for as long as one.
func (p *Processor) takeBack(ds []*delivery) {
	ctx, cancel := context.WithTimeout(p.settling, p.attempts.timeout)
	defer cancel()
	for _, d := range ds {
		if d.outcome != Interrupted && d.outcome != LeaseLost || d.refused {
			continue
		}
		if p.release(d) {
			continue
		}
		if err := d.attempt.takeBack(ctx); err != nil {
			p.log(d, slog.LevelWarn, "a start that came to nothing could not be taken back, and counts", err)
		}
	}
}

// release gives a delivery that our stop interrupted to others at once, where the queue can do that. In any other case it
// is left to its lease: it would come back hot.
func (p *Processor) release(d *delivery) bool {
	r, can := p.queue.Backend().(backend.Releaser)
	if !can || d.outcome != Interrupted || p.handlers.Err() == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(p.settling, p.config.CommitTimeout)
	defer cancel()
	err := r.Release(ctx, []backend.Delivery{d.message.Delivery()})
	if err != nil && !errors.Is(err, backend.ErrNotHeld) {
		p.log(d, slog.LevelWarn, "the message could not be given back and is left to its lease", err)
	}
	return err == nil
}

// settle runs a guarded transaction of the delivery and counts what it took.
func (p *Processor) settle(d *delivery, body func(context.Context, backend.Tx) error) settle.Verdict {
	return p.settleBy(p.queue.Backend(), d, body)
}

// settleBy is settle by transactions of q's.
func (p *Processor) settleBy(q backend.Queue, d *delivery, body func(context.Context, backend.Tx) error) settle.Verdict {
	x := settle.Tx{
		Queue:          q,
		Delivery:       d.message.Delivery(),
		Tag:            p.tag,
		Body:           body,
		MaxRuns:        p.config.MaxRuns,
		RunTime:        p.config.runTime(),
		AckTimeout:     p.config.patience(),
		CommitTimeout:  p.config.CommitTimeout,
		ResolveTimeout: p.config.ResolveTimeout,
	}
	v := x.Run(d.ctx)
	p.settled(v.Runs, v.Aborts, v.Unknown)
	return v
}

// handled turns what became of a handler's transaction into the outcome, and sees to the message's fate if it failed.
func (p *Processor) handled(d *delivery, result settle.Result, err error) Outcome {
	switch result {
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
		return p.failed(d, err)
	case settle.Unresolved:
		p.log(d, slog.LevelError, "the outcome of the commit is unknown; the message is left to its lease, and a later holder finds out", err)
		return Unresolved
	}
	p.log(d, slog.LevelWarn, "the database could not run the transaction; the message is left to its lease", err)
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
		if p.attempts.ledger == nil {
			break
		}
		if errors.Is(err, ErrUndecodable) {
			return p.bury(d, reasonDecode, err)
		}
		return p.bury(d, reasonHandler, err)
	}
	next := d.attempt.failed()
	if p.attempts.ledger != nil && next.Failures >= d.policy.MaxAttempts {
		return p.bury(d, reasonFailures, err)
	}
	if !marked || fate.kind == fateDeadLetter {
		fate.after = d.policy.Backoff.delay(next.Failures)
	}
	p.log(d, slog.LevelWarn, "the handler failed; the message is sent again for later", err, slog.Duration("after", fate.after))
	return p.postpone(d, Retried, fate.after, next)
}

// settled counts what a transaction took.
func (p *Processor) settled(runs, aborts, unknown int) {
	p.figures.settled(runs, aborts, unknown)
	p.telemetry.settled(runs, aborts, unknown)
}

// log writes a line about a delivery. The message's key and due time are in it, its payload is not.
func (p *Processor) log(d *delivery, level slog.Level, text string, err error, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("queue", p.queue.Name()), slog.String("handler", p.config.Name), slog.String("message", d.message.String()))
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
		if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
			attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
		}
	}
	p.telemetry.log(level, text, attrs...)
}
