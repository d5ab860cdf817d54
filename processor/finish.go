package processor

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/internal/settle"
)

// Reasons of dead letters.
const (
	reasonFailures = "attempts"   // MaxAttempts attempts ended with an error
	reasonStarts   = "no outcome" // the handler was started too often without coming to an outcome
	reasonHandler  = "handler"    // the handler said so
	reasonDecode   = "undecodable"
	reasonKind     = "unknown kind"
)

// postpone sends the message again, due after the delay by the database's clock.
func (p *Processor) postpone(d *delivery, outcome Outcome, after time.Duration, record backend.Record) Outcome {
	ctx, cancel := context.WithTimeout(p.settling, p.config.patience())
	defer cancel()
	asked := time.Now()
	now, err := p.queue.ServerTime(ctx)
	if err != nil {
		p.log(d, slog.LevelWarn, "the message could not be postponed and is left to its lease", err)
		return Interrupted
	}
	due := now.Add(after)
	// A due time for each run: whatever it is, it is not the one that the acknowledgement asserts, so that a run never takes
	// the message of an earlier run for the old one.
	return p.finish(d, outcome, func(ctx context.Context, tx backend.Tx) error {
		resent := backend.Outgoing{
			Key:         d.message.Key,
			Payload:     d.message.Payload,
			DeliverTime: duetime.Mark(later(due, now.Add(time.Since(asked)+commitTakes))),
		}
		if err := tx.Send(ctx, resent); err != nil {
			return err
		}
		return d.attempt.keep(ctx, tx, resent, record)
	})
}

// commitTakes is how long before its due time a message is sent again at least. The service replaces a due time that is
// past when the commit arrives by one of its own choice, and the record of the attempts, which names the due time, would
// then count for nothing.
const commitTakes = 250 * time.Millisecond

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// bury moves the message to the dead letters.
func (p *Processor) bury(d *delivery, reason string, cause error) Outcome {
	letter := backend.DeadLetter{
		Reason:   reason,
		Attempts: d.attempt.number(),
		First:    d.attempt.before.First,
		Handler:  p.config.Name,
	}
	if marker, ok := cause.(*fate); ok && marker.err != nil {
		cause = marker.err // the operator wants the handler's words, not ours
	}
	if cause != nil {
		letter.Error = cause.Error()
	} else {
		letter.Attempts = d.attempt.before.Starts + d.attempt.before.Failures
	}
	// A column's text is UTF-8, and an error's may hold any bytes: a letter that cannot be written would come again for ever.
	letter.Error, letter.Handler = printable(letter.Error), printable(letter.Handler)
	p.log(d, slog.LevelError, "the message goes to the dead letters", cause, slog.String("reason", reason), slog.Int("attempts", letter.Attempts))
	return p.finish(d, DeadLettered, func(ctx context.Context, tx backend.Tx) error {
		return tx.(backend.LedgerTx).Bury(ctx, d.message.Delivery(), letter)
	})
}

// maxErrorText is how much of an error's text a dead letter keeps.
const maxErrorText = 64 << 10

func printable(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "\uFFFD")
}

// finish runs the transaction of a fate.
func (p *Processor) finish(d *delivery, outcome Outcome, body func(context.Context, backend.Tx) error) Outcome {
	v := p.settle(d, body)
	switch v.Result {
	case settle.Committed, settle.Settled:
		if outcome == Discarded || outcome == DeadLettered {
			d.attempt.ended()
		}
		return outcome
	case settle.NotHeld:
		return Duplicate
	case settle.Unresolved:
		p.log(d, slog.LevelError, "the outcome of the commit is unknown; the message is left to its lease", v.Err)
		return Unresolved
	}
	p.log(d, slog.LevelWarn, "the message's fate could not be written; it is left to its lease", v.Err)
	d.refused = v.Result == settle.Refused || v.Result == settle.BodyFailed && !settle.MayHaveLanded(v.Err)
	return Interrupted
}
