package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A renewal that was refused is tried again soon, and then after longer and longer pauses.
func TestFailedRenewalsAreTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		refused := queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}
		calls := watchRenewals(m, map[int]queuetest.Fault{1: refused, 2: refused, 3: refused, 4: refused})
		time.Sleep(leaseLength)
		at := calls.since(time.Now())
		require.GreaterOrEqual(t, len(at), 5)
		for i, longest := range []time.Duration{leaseLength / 64, leaseLength / 32, leaseLength / 16, leaseLength / 8} {
			pause := at[i+1] - at[i]
			require.LessOrEqual(t, pause, longest, "pause %d", i)
			require.GreaterOrEqual(t, pause, longest/2, "pause %d", i)
		}
		require.Zero(t, m.Counts().LeasesEnded)
		h.Release()
		r.end()
	})
}

// What is due and could not be sent yet is planned again, and not before there is room for it.
func TestPlanSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBook(terms{length: 10 * time.Second, margin: time.Second}, Config{HighWater: 10_000, MaxBytes: 1 << 20, MaxWait: time.Hour},
			clock{boottime.Suspended})
		const n = 2*maxCall + 10
		for i := range int64(n) {
			b.arrived(message(i), 0)
		}
		time.Sleep(5 * time.Second)
		p := b.plan(b.clock.now(), allowed{calls: 2})
		require.Len(t, p.calls, 2)
		require.True(t, p.more)
		p = b.plan(b.clock.now(), allowed{calls: 2})
		require.Len(t, p.calls, 1)
		require.Len(t, p.calls[0].leases, 10)
		require.False(t, p.more)
		require.Empty(t, b.plan(b.clock.now(), allowed{calls: 2}).calls, "what was sent is not due again at once")
	})
}
