package idempotency_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// meter is a bench's figures.
type meter struct {
	*metric.MeterProvider
	reader *metric.ManualReader
}

func newMeter() meter {
	reader := metric.NewManualReader()
	return meter{metric.NewMeterProvider(metric.WithReader(reader)), reader}
}

// read returns each figure's values by the attribute "outcome", or "" where it
// has none, and all attribute values there are.
func (m meter) read(t *testing.T) (values map[string]map[string]float64, labels map[string]bool) {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, m.reader.Collect(t.Context(), &rm))
	values, labels = map[string]map[string]float64{}, map[string]bool{}
	for _, scope := range rm.ScopeMetrics {
		for _, metric := range scope.Metrics {
			of := map[string]float64{}
			values[metric.Name] = of
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					of[label(p.Attributes.ToSlice(), labels)] += float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					of[label(p.Attributes.ToSlice(), labels)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					of[label(p.Attributes.ToSlice(), labels)] = p.Value
				}
			default:
				t.Fatalf("%s is a %T", metric.Name, data)
			}
		}
	}
	return values, labels
}

func label(attributes []attribute.KeyValue, labels map[string]bool) (outcome string) {
	for _, a := range attributes {
		labels[a.Value.AsString()] = true
		if a.Key == "outcome" {
			outcome = a.Value.AsString()
		}
	}
	return outcome
}

func TestFiguresOfCalls(t *testing.T) {
	t.Parallel()
	m := newMeter()
	b := newBench(t, idempotency.Config{MeterProvider: m, CommitTimeout: time.Second})
	do := func(o idempotency.Operation, fp string, e idempotency.Effect) {
		_, _ = b.store.Do(t.Context(), o, payload(fp), e)
	}
	key := func(k string) idempotency.Operation {
		return idempotency.Operation{Scope: "secret", Name: "add", Key: "secret " + k}
	}

	do(key("1"), "p", effect(idempotency.Result{}))
	do(key("1"), "p", effect(idempotency.Result{}))
	do(key("1"), "p", effect(idempotency.Result{}))
	do(key("1"), "q", effect(idempotency.Result{}))
	refuse := func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, idempotency.Refuse(idempotency.Result{})
	}
	do(key("2"), "p", refuse)
	do(key("3"), "p", func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, errCrash
	})
	do(key("4"), "p", func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, idempotency.ErrExpired
	})
	b.begun(t, key("5"), "in_progress", b.now(t))
	do(key("5"), "p", refuse)
	b.begun(t, key("6"), "uncertain", b.now(t).Add(-time.Hour))
	do(key("6"), "p", refuse)
	b.begun(t, key("7"), "in_progress", b.now(t).Add(-time.Hour))
	_, err := b.store.Steps(t.Context(), key("7"), payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		b.age(t, key("7"), time.Hour)
		other := b.newStore(t, idempotency.Config{})
		_, err := other.Steps(t.Context(), key("7"), payload("p"), func(ctx context.Context, run *idempotency.Run) error {
			return run.Complete(ctx, effect(idempotency.Result{}))
		})
		require.NoError(t, err)
		return run.Complete(ctx, effect(idempotency.Result{}))
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
	away := b.fault(t, fault.Rule{Method: "Commit", Do: fault.Before(codes.Unknown, "unknown")})
	do(key("8"), "p", effect(idempotency.Result{}))
	away.Remove()

	values, labels := m.read(t)
	require.Equal(t, map[string]float64{
		"done": 1, "replayed": 2, "mismatch": 1, "refused": 1, "error": 1, "expired": 1,
		"in_progress": 1, "uncertain": 1, "not_owner": 1, "unresolved": 1,
	}, values["spanqueue.idempotency.calls"])
	require.Equal(t, map[string]float64{"": 1}, values["spanqueue.idempotency.takeovers"])
	for l := range labels {
		require.NotContains(t, l, "secret")
	}
	require.True(t, labels["add"] && labels["Operations"])
}

func TestFiguresOfASweep(t *testing.T) {
	t.Parallel()
	m := newMeter()
	b := newBench(t, idempotency.Config{MeterProvider: m})
	for _, k := range []string{"1", "2", "3"} {
		_, err := b.store.Do(t.Context(), idempotency.Operation{Scope: "s", Name: "n", Key: k}, payload("p"), effect(idempotency.Result{Body: []byte("12345")}))
		require.NoError(t, err)
	}
	b.age(t, idempotency.Operation{Scope: "s", Name: "n", Key: "1"}, 50*time.Hour)
	b.age(t, idempotency.Operation{Scope: "s", Name: "n", Key: "2"}, 40*time.Hour)
	b.begun(t, op, "in_progress", b.now(t).Add(-10*time.Hour))
	b.sweep(t)
	values, _ := m.read(t)
	got := func(name string) float64 { return values["spanqueue.idempotency."+name][""] }
	require.EqualValues(t, 1, got("swept"))
	require.EqualValues(t, 3, got("records"))
	require.EqualValues(t, 10, got("bytes"))
	require.EqualValues(t, 1, got("unfinished"))
	require.InDelta(t, (40 * time.Hour).Seconds(), got("oldest"), 60)
	require.InDelta(t, (10 * time.Hour).Seconds(), got("in_progress_age"), 60)
	require.InDelta(t, (2 * time.Hour).Seconds(), got("sweep_lag"), 60)
}
