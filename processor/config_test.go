package processor_test

import (
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func TestHandlersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{LeaseLength: leaseLength}})
	db := e.Database(t, testQueue.DDL())
	q, err := queue.New(db.Client(t), testQueue)
	require.NoError(t, err)
	kind := func(*queue.Message) (string, error) { return "", nil }
	ok := processor.Tx(addOne)
	for name, c := range map[string]struct {
		handler processor.Handler
		says    string
	}{
		"nil":            {nil, "handler is nil"},
		"nil function":   {processor.Tx(nil), "function is nil"},
		"nil batch":      {processor.Batch(nil), "function is nil"},
		"half a call":    {processor.Call[int]{}, "Call and Settle"},
		"no decoder":     {processor.Typed[int](nil, nil), "decoder"},
		"no kind":        {processor.Mux{Routes: map[string]processor.Route{"a": {Handler: ok}}}.Handler(), "Mux.Kind"},
		"no routes":      {processor.Mux{Kind: kind}.Handler(), "Mux.Routes is empty"},
		"empty route":    {processor.Mux{Kind: kind, Routes: map[string]processor.Route{"a": {}}}.Handler(), `Mux.Routes["a"]`},
		"batch in a mux": {processor.Mux{Kind: kind, Routes: map[string]processor.Route{"a": {Handler: processor.Batch(addAll)}}}.Handler(), "Batch"},
		"batch in a mux in a mux": {processor.Mux{Kind: kind, Routes: map[string]processor.Route{"a": {Handler: processor.Mux{Kind: kind,
			Routes: map[string]processor.Route{"b": {Handler: processor.Batch(addAll)}}}.Handler()}}}.Handler(), `Mux.Routes["a"]: Mux.Routes["b"]: its Handler is a Batch`},
		"bad policy": {processor.Mux{Kind: kind, Routes: map[string]processor.Route{"a": {Handler: ok, Policy: processor.Policy{MaxAttempts: -1}}}}.Handler(),
			"MaxAttempts is -1"},
	} {
		_, err := processor.New(q, c.handler, processor.Config{})
		require.ErrorIs(t, err, processor.ErrInvalid, name)
		require.ErrorContains(t, err, c.says, name)
	}
	limited := map[string]processor.Route{"a": {Handler: ok, Policy: processor.Policy{MaxAttempts: 2}}}
	for _, h := range []processor.Handler{
		processor.Mux{Kind: kind, Routes: limited}.Handler(),
		processor.Mux{Kind: kind, Routes: map[string]processor.Route{"b": {Handler: processor.Mux{Kind: kind, Routes: limited}.Handler()}}}.Handler(),
	} {
		_, err := processor.New(q, h, processor.Config{MaxAttempts: -1})
		require.ErrorIs(t, err, processor.ErrInvalid)
		require.ErrorContains(t, err, `Mux.Routes["a"]: its Policy: MaxAttempts is 2, but Config.MaxAttempts is -1`)
	}
	for field, config := range map[string]processor.Config{
		"Concurrency":    {Concurrency: -1},
		"MaxBatch":       {MaxBatch: 1001},
		"Linger":         {Linger: time.Minute},
		"HandlerTimeout": {HandlerTimeout: -time.Second},
		"CommitTimeout":  {CommitTimeout: time.Microsecond},
		"ResolveTimeout": {ResolveTimeout: -1},
		"DrainTimeout":   {DrainTimeout: -1},
		"MaxRuns":        {MaxRuns: -1},
		"Backoff.Min":    {Backoff: processor.Backoff{Min: -1}},
		"Backoff.Max":    {Backoff: processor.Backoff{Min: time.Hour, Max: time.Minute}},
		"Receiver":       {Receiver: lease.Config{HighWater: -1}},
	} {
		_, err := processor.New(q, ok, config)
		require.ErrorIs(t, err, processor.ErrInvalid, field)
		require.ErrorContains(t, err, field)
	}
	_, err = processor.New(nil, ok, processor.Config{})
	require.ErrorContains(t, err, "queue is nil")
}
