package front

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// Latency makes round trips felt that cost nothing on one machine: every request waits before the front looks at it. The
// zero value waits for nothing. What a client sends in a transaction whose turn it is, it sends while others wait, so
// that a program with many round trips in a transaction is slow here as it would be on the service.
type Latency struct {
	// Read is for Read, StreamingRead and PartitionRead.
	Read Wait
	// Statement is for ExecuteSql, ExecuteStreamingSql (once, when the stream opens), ExecuteBatchDml and
	// PartitionQuery.
	Statement Wait
	// Commit is for Commit, BatchWrite and Rollback.
	Commit Wait
	// Begin is for BeginTransaction.
	Begin Wait
	// Seed feeds the random parts: with the same seed, the n-th request of a class waits for the same time. Zero is a
	// seed like any other.
	Seed uint64
}

// Wait is a time of two parts. Neither may be negative.
type Wait struct {
	// Fixed is waited for always.
	Fixed time.Duration
	// Random is the most that comes on top; what does is evenly distributed.
	Random time.Duration
}

// EqualLatency is the same wait for all classes of requests.
func EqualLatency(w Wait) Latency { return Latency{Read: w, Statement: w, Commit: w, Begin: w} }

func (l Latency) validate() error {
	for class, w := range map[string]Wait{"Read": l.Read, "Statement": l.Statement, "Commit": l.Commit, "Begin": l.Begin} {
		if w.Fixed < 0 || w.Random < 0 {
			return fmt.Errorf("front: Options.Latency.%s is %v and up to %v at random, want 0 or more", class, w.Fixed, w.Random)
		}
	}
	return nil
}

// waits are what the requests of a front wait for, by method.
type waits map[string]*classWait

// newWaits is nil for the zero Latency.
func newWaits(l Latency) waits {
	ws := make(waits)
	for i, class := range []struct {
		wait    Wait
		methods []string
	}{
		{l.Read, []string{"Read", "StreamingRead", "PartitionRead"}},
		{l.Statement, []string{"ExecuteSql", "ExecuteStreamingSql", "ExecuteBatchDml", "PartitionQuery"}},
		{l.Commit, []string{"Commit", "BatchWrite", "Rollback"}},
		{l.Begin, []string{"BeginTransaction"}},
	} {
		if class.wait == (Wait{}) {
			continue
		}
		c := &classWait{wait: class.wait, random: rand.New(rand.NewPCG(l.Seed, uint64(i)))}
		for _, m := range class.methods {
			ws[m] = c
		}
	}
	return ws
}

// wait waits for what the method takes, or until ctx ends.
func (ws waits) wait(ctx context.Context, method string) error {
	c := ws[method]
	if c == nil {
		return nil
	}
	t := time.NewTimer(c.next())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// classWait draws the waits of one class of requests.
type classWait struct {
	wait Wait

	mu     sync.Mutex
	random *rand.Rand
}

func (c *classWait) next() time.Duration {
	if c.wait.Random == 0 {
		return c.wait.Fixed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wait.Fixed + time.Duration(c.random.Int64N(int64(c.wait.Random)+1))
}
