package processor_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// slowSpans is an exporter of spans that never returns, or panics.
type slowSpans struct{ do func() }

func (s slowSpans) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { s.do(); return nil }
func (s slowSpans) Shutdown(context.Context) error                             { return nil }

// An exporter that blocks or panics costs no work, and no log lines.
func TestExporterThatBlocksOrPanics(t *testing.T) {
	t.Parallel()
	until := make(chan struct{})
	t.Cleanup(func() { close(until) })
	for name, do := range map[string]func(){"blocks": func() { <-until }, "panics": func() { panic("exporter") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if m.Attempt == 1 {
					return errors.New("first") // which is logged
				}
				return addOne(ctx, tx, m)
			}, func(c *processor.Config) {
				c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(slowSpans{do}))
			})
			w.send("m1", "m2", "m3")
			r.outcome(processor.Done, 3)
			wait(t, "the lines", func() bool { return strings.Count(r.logs.String(), "the handler failed") == 3 })
			require.NoError(t, r.stop())
			w.once("m1", "m2", "m3")
		})
	}
}

// What a handler panicked with and where it did are in the log.
func TestPanicIsLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	r := w.work(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error { panicHere(); return nil }, maxAttempts(1))
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.Contains(t, r.logs.String(), "the handler panicked: out of order")
	require.Contains(t, r.logs.String(), "processor_test.panicHere(")
}

func panicHere() { panic("out of order") }

// blocked is a logger's handler that never returns.
type blocked struct{ until chan struct{} }

func (b blocked) Enabled(context.Context, slog.Level) bool { return true }
func (b blocked) Handle(context.Context, slog.Record) error {
	<-b.until
	return nil
}
func (b blocked) WithAttrs([]slog.Attr) slog.Handler { return b }
func (b blocked) WithGroup(string) slog.Handler      { return b }

// panics is one that panics.
type panics struct{ blocked }

func (p panics) Handle(context.Context, slog.Record) error { panic("logger") }

// A logger that blocks or panics costs nothing but its lines.
func TestLoggerThatBlocksOrPanics(t *testing.T) {
	t.Parallel()
	until := make(chan struct{})
	t.Cleanup(func() { close(until) })
	for name, h := range map[string]slog.Handler{"blocks": blocked{until}, "panics": panics{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			reader := metric.NewManualReader()
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if m.Attempt == 1 {
					return errors.New("first") // which is logged
				}
				return addOne(ctx, tx, m)
			}, func(c *processor.Config) {
				c.Logger = slog.New(h)
				c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
			})
			w.send("m1", "m2", "m3")
			r.outcome(processor.Done, 3)
			wait(t, "the figures", func() bool {
				told, _ := consumed(t, reader)
				return told["done"] == 3
			})
			require.NoError(t, r.stop())
			w.once("m1", "m2", "m3")
		})
	}
}
