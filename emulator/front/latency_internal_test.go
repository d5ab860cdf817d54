package front

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Each class waits for its own time, and what is in no class for none.
func TestWaitsByClass(t *testing.T) {
	ws := newWaits(Latency{Read: Wait{Fixed: time.Second}, Statement: Wait{Fixed: 2 * time.Second}, Commit: Wait{Fixed: 3 * time.Second}, Begin: Wait{Fixed: 4 * time.Second}})
	for method, want := range map[string]time.Duration{
		"Read": time.Second, "StreamingRead": time.Second, "PartitionRead": time.Second,
		"ExecuteSql": 2 * time.Second, "ExecuteStreamingSql": 2 * time.Second, "ExecuteBatchDml": 2 * time.Second, "PartitionQuery": 2 * time.Second,
		"Commit": 3 * time.Second, "BatchWrite": 3 * time.Second, "Rollback": 3 * time.Second,
		"BeginTransaction": 4 * time.Second,
		"CreateSession":    0, "GetDatabase": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			require.NoError(t, ws.wait(t.Context(), method))
			require.Equal(t, want, time.Since(begun), method)
		})
	}
}

func TestRandomPartIsBoundedAndSeeded(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		l := EqualLatency(Wait{Fixed: time.Second, Random: time.Millisecond})
		l.Seed = seed
		c := newWaits(l)["Commit"]
		for range 100 {
			all = append(all, c.next())
		}
		return all
	}
	one := draw(1)
	require.Equal(t, one, draw(1))
	require.NotEqual(t, one, draw(2))
	low, high := one[0], one[0]
	for _, d := range one {
		low, high = min(low, d), max(high, d)
	}
	require.GreaterOrEqual(t, low, time.Second)
	require.LessOrEqual(t, high, time.Second+time.Millisecond)
	require.Greater(t, high-low, time.Millisecond/2)
}

func TestWaitEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := newWaits(EqualLatency(Wait{Fixed: time.Hour})).wait(ctx, "Commit")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestLatencyIsChecked(t *testing.T) {
	for _, o := range []Options{{Latency: Latency{Commit: Wait{Fixed: -1}}}, {Latency: Latency{Read: Wait{Random: -1}}}} {
		_, err := New(t.Context(), "localhost:1", o)
		require.ErrorContains(t, err, "Options.Latency")
	}
}
