package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/front"
)

func TestLatencyForms(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for text, want := range map[string]front.Latency{
		"5ms":     front.EqualLatency(front.Wait{Fixed: 5 * ms}),
		"5ms+2ms": front.EqualLatency(front.Wait{Fixed: 5 * ms, Random: 2 * ms}),
		"read=1ms, statement=2ms+1ms,commit=8ms,begin=0s": {Read: front.Wait{Fixed: ms}, Statement: front.Wait{Fixed: 2 * ms, Random: ms}, Commit: front.Wait{Fixed: 8 * ms}},
		"1ms,commit=2ms": {Read: front.Wait{Fixed: ms}, Statement: front.Wait{Fixed: ms}, Commit: front.Wait{Fixed: 2 * ms}, Begin: front.Wait{Fixed: ms}},
	} {
		got := front.Latency{Seed: 7}
		require.NoError(t, latencyFlag{&got}.Set(text), text)
		want.Seed = 7
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5", "-5ms", "5ms+", "5ms+-1ms", "write=1ms", "read=", "5ms,,"} {
		var got front.Latency
		require.Error(t, latencyFlag{&got}.Set(text), text)
		require.Zero(t, got, text)
	}
}
