package processor_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	grpccodes "google.golang.org/grpc/codes"
)

// consumed reads the counts of deliveries by outcome, and all label keys and values that were used anywhere.
func consumed(t *testing.T, reader *metric.ManualReader) (byOutcome map[string]int64, labels []attribute.KeyValue) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	byOutcome = map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					labels = append(labels, p.Attributes.ToSlice()...)
					if m.Name == "messaging.client.consumed.messages" {
						outcome, _ := p.Attributes.Value("spanqueue.outcome")
						byOutcome[outcome.AsString()] += p.Value
					}
				}
			}
		}
	}
	return byOutcome, labels
}

// F37: the right outcome is reported, once.
func TestF37OutcomesAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("done", "error", "later0", "later1", "later10", "lost answer", "aborted", "duplicate")
	reader := metric.NewManualReader()
	spans := tracetest.NewInMemoryExporter()
	with := func(c *processor.Config) {
		c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
		c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		c.Concurrency = 1
		c.DrainTimeout = 50 * time.Millisecond
	}
	// The transactions are told apart by what they do: each message's first one reads its own effect.
	reads := func(id string) func(fault.Call) bool {
		return func(c fault.Call) bool {
			return strings.Contains(c.Tag, "queue=Q") && c.SQL == "" && strings.Contains(protoText(c.Request), id)
		}
	}
	w.fault(fault.Rule{Method: "Commit", Match: reads("lost answer"), Nth: 1, Do: fault.After(grpccodes.Internal, "broken")})
	w.fault(fault.Rule{Method: "Commit", Match: reads("aborted"), Nth: 1, Times: 3, Do: fault.Abort()})
	taken := w.fault(fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Match: func(c fault.Call) bool {
		return strings.Contains(protoText(c.Request), `"duplicate"`)
	}, Nth: 1, Do: fault.Hold()})
	interrupted := make(chan struct{})
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		switch m.Key[0] {
		case "error":
			return processor.Retry(errors.New("secret text"), time.Hour)
		case "later0", "later1", "later10":
			return processor.Snooze(time.Hour)
		case "interrupted":
			close(interrupted)
			<-ctx.Done()
			return ctx.Err()
		}
		return addOne(ctx, tx, m)
	}, with)
	w.applied(taken)
	_, err := w.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return tx.BufferWrite([]*spanner.Mutation{spanner.Ack("Q", spanner.Key{"duplicate"})})
	})
	require.NoError(t, err)
	taken.Release()
	wait(t, "all but the interrupted one", func() bool {
		total := int64(0)
		for _, n := range r.Figures().Deliveries {
			total += n
		}
		return total >= 8
	})
	w.send("interrupted") // last, since it holds the only slot
	<-interrupted
	require.NoError(t, r.stop())

	got, labels := consumed(t, reader)
	want := map[string]int64{"done": 3, "retried": 1, "snoozed": 3, "duplicate": 1, "interrupted": 1}
	require.Equal(t, want, got)
	for _, l := range labels {
		for _, secret := range []string{"secret", "later", "lost answer"} {
			require.NotContains(t, l.Value.String(), secret, "label %s", l.Key)
		}
	}
	ended := spans.GetSpans()
	byOutcome := map[string]int64{}
	for _, s := range ended {
		if s.InstrumentationScope.Name != "github.com/spanqueue/spanqueue/processor" {
			continue
		}
		require.Equal(t, "process Q", s.Name)
		for _, a := range s.Attributes {
			if a.Key == "spanqueue.outcome" {
				byOutcome[a.Value.AsString()]++
				require.Equal(t, a.Value.AsString() == "retried", s.Status.Code == codes.Error, "error status only on failures")
			}
		}
	}
	require.Equal(t, want, byOutcome, "one span a delivery, ended once")
}

// Every figure is in the package documentation, with its unit, and no other is.
func TestFiguresAreDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	reader := metric.NewManualReader()
	r := w.work(addOne, func(c *processor.Config) { c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader)) })
	r.outcome(processor.Done, 1)
	units := map[string]string{}
	attributes := map[attribute.Key]bool{}
	wait(t, "the figures", func() bool {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				require.NotEmpty(t, m.Description, m.Name)
				units[m.Name] = m.Unit
			}
		}
		_, told := units["messaging.process.duration"]
		return told
	})
	_, labels := consumed(t, reader)
	for _, l := range labels {
		attributes[l.Key] = true
	}
	require.NoError(t, r.stop())

	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^//\t((?:messaging|spanqueue)\.\S+) +(?:counter|histogram|gauge) +(\S+) `).FindAllStringSubmatch(string(source), -1) {
		documented[row[1]] = row[2]
	}
	require.Equal(t, documented, units)
	require.Contains(t, attributes, attribute.Key("messaging.operation.type"))
	for a := range attributes {
		require.Contains(t, string(source), string(a))
	}
}
