package processor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The database goes away for several leases while work is under way: workers go on by themselves, and nothing is lost or
// done twice. Run does not end, and no message is blamed.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := ids(20)
	r := w.work(addOne, maxAttempts(1))
	w.send(before...)
	wait(t, "some work", func() bool { return r.Figures().Deliveries[processor.Done] >= 5 })
	away := w.fault(fault.Rule{Nth: 1, Times: 1, Do: fault.Away(3 * leaseLength)})
	w.applied(away)
	wait(t, "the rest", func() bool {
		f := r.Figures().Deliveries
		return f[processor.Done]+f[processor.SettledElsewhere] >= 20
	})
	w.send("after")
	wait(t, "what was sent after", func() bool { return w.left("after") == 0 })
	require.NoError(t, r.stop())
	w.once(append(before, "after")...)
	require.Zero(t, r.Figures().Deliveries[processor.DeadLettered])
	require.Zero(t, r.Figures().Deliveries[processor.Retried])
}

// Receive streams that the server refuses are opened again, with pauses, and the messages come.
func TestReceiversBeyondTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RECEIVE_Q", Nth: 1, Times: 2, Do: fault.Before(codes.ResourceExhausted, "too many receivers")})
	w.send("m1")
	r := w.work(addOne)
	begun := time.Now()
	r.outcome(processor.Done, 1)
	require.Equal(t, 2, refused.Applied())
	require.Greater(t, time.Since(begun), 500*time.Millisecond, "it backs off")
	require.NoError(t, r.stop())
	w.once("m1")
}

// Several processors with several streams share a queue.
func TestSeveralWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(200)
	w.send(all...)
	var workers []*worker
	for range 4 {
		workers = append(workers, w.workOn(w.openQueue(w.db.Client(t)), addOne))
	}
	wait(t, "the end", func() bool {
		done := int64(0)
		for _, r := range workers {
			done += r.Figures().Deliveries[processor.Done]
		}
		return done == 200
	})
	shares := ""
	for _, r := range workers {
		shares += fmt.Sprint(" ", r.Figures().Deliveries[processor.Done])
		require.NoError(t, r.stop())
	}
	t.Log("shares:", shares)
	w.once(all...)
}
