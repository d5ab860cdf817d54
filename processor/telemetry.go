package processor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/aside"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names this library to OpenTelemetry.
const scope = "github.com/spanqueue/spanqueue/processor"

const (
	// asideDepth is how many figures, and how many log lines, may wait for a slow exporter or logger before some are dropped.
	asideDepth = 4096
	// asidePatience is how long the end of Run waits for them.
	asidePatience = time.Second
)

// telemetry tells the outside what happens. Whatever belongs to the user (logger, exporter) is called beside the work.
type telemetry struct {
	logger *slog.Logger
	tracer trace.Tracer
	meter  metric.Meter
	span   string               // the name of every span
	same   []attribute.KeyValue // of every figure and span

	consumed metric.Int64Counter
	duration metric.Float64Histogram
	runs     metric.Int64Counter
	aborts   metric.Int64Counter
	unknown  metric.Int64Counter

	// Exporters and the logger do not wait for each other. Both are set by open.
	figures, lines *aside.Runner
}

func newTelemetry(c Config, queueName string) (*telemetry, error) {
	t := &telemetry{
		logger: c.Logger,
		span:   "process " + queueName,
		same: []attribute.KeyValue{
			attribute.String("messaging.system", "spanner"),
			attribute.String("messaging.operation.name", "process"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", queueName),
			attribute.String("messaging.consumer.group.name", c.Name),
		},
	}
	tracers, meters := c.TracerProvider, c.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	t.tracer, t.meter = tracers.Tracer(scope), meters.Meter(scope)
	var err error
	if t.consumed, err = t.meter.Int64Counter("messaging.client.consumed.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Deliveries that ended, by outcome.")); err != nil {
		return nil, err
	}
	if t.duration, err = t.meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("From the start of a delivery to its outcome."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)); err != nil {
		return nil, err
	}
	if t.runs, err = t.meter.Int64Counter("spanqueue.transaction.runs", metric.WithUnit("{transaction}"),
		metric.WithDescription("Transactions that were begun, for handlers and for fates.")); err != nil {
		return nil, err
	}
	if t.aborts, err = t.meter.Int64Counter("spanqueue.transaction.aborts", metric.WithUnit("{transaction}"),
		metric.WithDescription("Transactions that were begun again since nothing of them was kept, nearly always because the database had aborted them.")); err != nil {
		return nil, err
	}
	t.unknown, err = t.meter.Int64Counter("spanqueue.commit.unknown", metric.WithUnit("{commit}"),
		metric.WithDescription("Commits whose outcome was unknown at first."))
	return t, err
}

// open makes ready for Run. The returned function waits a while for what has not been told yet.
func (t *telemetry) open() (end func()) {
	t.figures, t.lines = aside.New(asideDepth), aside.New(asideDepth)
	return func() {
		var both sync.WaitGroup
		both.Go(func() { t.figures.Close(asidePatience) })
		both.Go(func() { t.lines.Close(asidePatience) })
		both.Wait()
	}
}

// observe shows the receiver's figures while Run runs. The returned function ends that.
func (t *telemetry) observe(p *Processor) (end func(), err error) {
	gauge := func(name, unit, description string) (g metric.Int64ObservableGauge) {
		if err == nil {
			g, err = t.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		}
		return g
	}
	counter := func(name, unit, description string) (c metric.Int64ObservableCounter) {
		if err == nil {
			c, err = t.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		}
		return c
	}
	waiting := gauge("spanqueue.receiver.waiting", "{message}", "Messages that were received and wait for a slot.")
	inHand := gauge("spanqueue.receiver.in_hand", "{message}", "Messages that are being handled.")
	renewed := counter("spanqueue.lease.renewed", "{lease}", "Leases that were renewed.")
	lost := counter("spanqueue.lease.lost", "{lease}", "Leases that ended while their messages were being handled.")
	streams := counter("spanqueue.receiver.streams", "{stream}", "Receive streams that were opened.")
	dropped := counter("spanqueue.telemetry.dropped", "{item}", "Figures, spans and log lines that were dropped since an exporter or the logger was too slow.")
	if err != nil {
		return nil, err
	}
	attributes := metric.WithAttributes(t.same...)
	registration, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := p.receiver.Stats()
		o.ObserveInt64(waiting, int64(s.Waiting), attributes)
		o.ObserveInt64(inHand, int64(s.InHand), attributes)
		o.ObserveInt64(renewed, s.Renewed, attributes)
		o.ObserveInt64(lost, s.Lost, attributes)
		o.ObserveInt64(streams, s.Streams, attributes)
		o.ObserveInt64(dropped, t.figures.Dropped()+t.lines.Dropped(), attributes)
		return nil
	}, waiting, inHand, renewed, lost, streams, dropped)
	if err != nil {
		return nil, err
	}
	return func() { _ = registration.Unregister() }, nil
}

// begin starts the span of a delivery. A tracer that panics costs the span.
func (t *telemetry) begin(ctx context.Context) (with context.Context, span trace.Span) {
	defer func() {
		if recover() != nil {
			with, span = ctx, trace.SpanFromContext(context.Background())
		}
	}()
	return t.tracer.Start(ctx, t.span, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(t.same...))
}

// end tells the outcome of a delivery and ends its span.
func (t *telemetry) end(d *delivery) {
	outcome, took, attempt, span := d.outcome, time.Since(d.started), d.attempt.number(), d.span
	t.figures.Do(func() {
		own := []attribute.KeyValue{attribute.String("spanqueue.outcome", outcome.String())}
		if outcome.isFailure() {
			own = append(own, attribute.String("error.type", outcome.String()))
			span.SetStatus(codes.Error, outcome.String())
		}
		span.SetAttributes(append(own, attribute.Int("spanqueue.attempt", attempt))...)
		span.End()
		attributes := metric.WithAttributes(append(own, t.same...)...)
		t.consumed.Add(context.Background(), 1, attributes)
		t.duration.Record(context.Background(), took.Seconds(), attributes)
	})
}

// settled tells what a transaction took.
func (t *telemetry) settled(runs, aborts, unknown int) {
	t.figures.Do(func() {
		attributes := metric.WithAttributes(t.same...)
		t.runs.Add(context.Background(), int64(runs), attributes)
		t.aborts.Add(context.Background(), int64(aborts), attributes)
		t.unknown.Add(context.Background(), int64(unknown), attributes)
	})
}

// log writes a line. Its time is that of the call.
func (t *telemetry) log(level slog.Level, text string, attrs ...slog.Attr) {
	record := slog.NewRecord(time.Now(), level, "spanqueue: "+text, 0)
	record.AddAttrs(attrs...)
	t.lines.Do(func() {
		if h := t.logger.Handler(); h.Enabled(context.Background(), level) {
			_ = h.Handle(context.Background(), record)
		}
	})
}
