package idempotency

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meterName names the instruments' scope, as OpenTelemetry asks.
const meterName = "github.com/spanqueue/spanqueue/idempotency"

// figures are the instruments of one Store. Labels are the table, the
// operation's name and an outcome; scope and key never are.
//
//	spanqueue.idempotency.calls             calls of Do and Steps, by operation and outcome
//	spanqueue.idempotency.takeovers         operations taken over from an owner that was gone
//	spanqueue.idempotency.swept             records deleted after their retention
//	spanqueue.idempotency.records           records in the table
//	spanqueue.idempotency.bytes             bytes of the results and steps in them
//	spanqueue.idempotency.oldest            age in seconds of the oldest record
//	spanqueue.idempotency.in_progress_age   age in seconds of the oldest operation that has not ended
//	spanqueue.idempotency.unfinished        operations that have not ended and have no owner
//	spanqueue.idempotency.sweep_lag         seconds since the oldest expired record expired
//
// The last six are taken by each sweep, from one process a table is enough.
type figures struct {
	table                           attribute.KeyValue
	calls, takeovers, swept         metric.Int64Counter
	records, bytes, unfinished      metric.Int64Gauge
	oldest, inProgressAge, sweepLag metric.Float64Gauge
}

func newFigures(provider metric.MeterProvider, table string) (*figures, error) {
	meter := provider.Meter(meterName)
	f := &figures{table: attribute.String("table", table)}
	var errs []error
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := meter.Int64Counter("spanqueue.idempotency."+name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, text string) metric.Int64Gauge {
		g, err := meter.Int64Gauge("spanqueue.idempotency."+name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return g
	}
	age := func(name, text string) metric.Float64Gauge {
		g, err := meter.Float64Gauge("spanqueue.idempotency."+name, metric.WithUnit("s"), metric.WithDescription(text))
		errs = append(errs, err)
		return g
	}
	f.calls = counter("calls", "{call}", "Calls by operation and outcome.")
	f.takeovers = counter("takeovers", "{takeover}", "Operations taken over from an owner that was gone.")
	f.swept = counter("swept", "{record}", "Records deleted after their retention.")
	f.records = gauge("records", "{record}", "Records in the table.")
	f.bytes = gauge("bytes", "By", "Bytes of results and steps in the table.")
	f.unfinished = gauge("unfinished", "{operation}", "Operations that have not ended and have no owner, up to 100.")
	f.oldest = age("oldest", "Age of the oldest record.")
	f.inProgressAge = age("in_progress_age", "Age of the oldest operation that has not ended.")
	f.sweepLag = age("sweep_lag", "Time since the oldest expired record that is still there expired.")
	return f, errors.Join(errs...)
}

// called counts one call by how it ended for its caller.
func (f *figures) called(ctx context.Context, op Operation, r Receipt, err error) {
	f.calls.Add(ctx, 1, metric.WithAttributes(f.table,
		attribute.String("operation", op.Name), attribute.String("outcome", outcome(r, err))))
}

func (f *figures) tookOver(ctx context.Context, op Operation) {
	f.takeovers.Add(ctx, 1, metric.WithAttributes(f.table, attribute.String("operation", op.Name)))
}

// sweep takes what a sweep saw.
func (f *figures) sweep(ctx context.Context, swept Swept) {
	table := metric.WithAttributes(f.table)
	f.swept.Add(ctx, int64(swept.Deleted), table)
	f.records.Record(ctx, swept.Records, table)
	f.bytes.Record(ctx, swept.Bytes, table)
	f.oldest.Record(ctx, swept.Oldest.Seconds(), table)
	f.inProgressAge.Record(ctx, swept.InProgress.Seconds(), table)
	f.sweepLag.Record(ctx, swept.Lag.Seconds(), table)
	f.unfinished.Record(ctx, int64(len(swept.Unfinished)), table)
}

// outcome is the label of a call.
func outcome(r Receipt, err error) string {
	switch {
	case err == nil && r.Replayed:
		return "replayed"
	case err == nil && r.Refused:
		return "refused"
	case err == nil:
		return "done"
	}
	for _, known := range []struct {
		err   error
		label string
	}{
		{ErrMismatch, "mismatch"},
		{ErrInProgress, "in_progress"},
		{ErrUncertain, "uncertain"},
		{ErrNotOwner, "not_owner"},
		{ErrUnresolved, "unresolved"},
		{ErrExpired, "expired"},
	} {
		if errors.Is(err, known.err) {
			return known.label
		}
	}
	return "error"
}
