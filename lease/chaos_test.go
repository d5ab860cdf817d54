package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Whatever goes wrong with streams, rows, renewals, commits and clocks, for three workers that come and go on a machine that
// is suspended now and then: every message takes effect once, and everything ends. The effect is a line in a list, written
// in the transaction that acknowledges, so that one that happens twice shows. Each message has two: the first one sends it
// again, under its key, in the same transaction, and without the guard a stale holder's, or one that is run again, would
// take the new one for the old.
func TestChaos(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	const n = 60
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 7))
	chance := func(p float64) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64() < p
	}
	within := func(d time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(d)) + 1)
	}
	code := func() error {
		mu.Lock()
		defer mu.Unlock()
		return queuetest.Code([]codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.DeadlineExceeded}[random.IntN(4)])
	}
	any := func(int) queuetest.Fault {
		switch {
		case chance(0.8):
			return queuetest.Fault{}
		case chance(0.3):
			return queuetest.Fault{Before: within(2 * leaseLength)}
		case chance(0.3):
			return queuetest.Fault{After: within(2 * leaseLength)}
		case chance(0.1):
			return queuetest.Fault{Stall: true, Landed: chance(0.5)}
		}
		return queuetest.Fault{Err: code(), Landed: chance(0.5)}
	}

	m := memory(t)
	var ids []int64
	for i := range int64(n) {
		ids = append(ids, i)
	}
	send(t, m.Queue(), ids...)
	for _, op := range []queuetest.Op{queuetest.OpReceive, queuetest.OpRow, queuetest.OpRenew, queuetest.OpProbe, queuetest.OpServerTime} {
		m.SetFault(op, any)
	}
	m.SetFault(queuetest.OpCommit, func(n int) queuetest.Fault {
		f := any(n)
		switch {
		case chance(0.05):
			f = queuetest.Fault{Rerun: true}
		case f.Err != nil && !f.Landed && chance(0.3):
			f.Late = within(leaseLength)
		}
		return f
	})

	work := func(r *running) {
		for {
			h, err := r.Next(t.Context())
			if err != nil {
				return
			}
			chaosHandle(t.Context(), m, h, chance, within)
			h.Release()
		}
	}
	on := &machine{}
	deadline := time.Now().Add(24 * time.Hour)
	for left := 2 * n; left > 0; left = 2*n - len(m.Dead()) {
		require.True(t, time.Now().Before(deadline), "%d of %d effects have not taken place in a day", left, 2*n)
		var workers sync.WaitGroup
		var all []*running
		for range 3 {
			r := startOn(t, on, m.Queue(), Config{LowWater: 5, HighWater: 20})
			all = append(all, r)
			for range 4 {
				workers.Go(func() { work(r) })
			}
		}
		suspended := time.AfterFunc(within(20*leaseLength), func() { on.suspend(within(3 * leaseLength)) })
		time.Sleep(within(20 * leaseLength))
		suspended.Stop()
		m.SetOffset(within(time.Minute) - 30*time.Second)
		for _, r := range all {
			r.end()
		}
		workers.Wait()
	}
	time.Sleep(2 * leaseLength) // a commit may land late
	effects := make(map[string]int)
	for _, d := range m.Dead() {
		effects[fmt.Sprint(d.Message.Key[0], d.Reason)]++
	}
	for _, id := range ids {
		for _, step := range []string{"work", "more"} {
			require.Equal(t, 1, effects[fmt.Sprint(id, step)], "effects of message %d, %s", id, step)
		}
	}
}

// chaosHandle works on a message in one of the ways there are.
func chaosHandle(ctx context.Context, m *queuetest.Memory, h *Held, chance func(float64) bool, within func(time.Duration) time.Duration) {
	if chance(0.5) {
		if h.Confirm(ctx) != nil {
			return
		}
	}
	if chance(0.2) && h.Defer(ctx, within(10*leaseLength)) != nil {
		return
	}
	if err := work(ctx, h, within(2*leaseLength)); err != nil && chance(0.7) {
		return // some do not listen
	}
	h.Settling()
	d := h.Message().Delivery()
	more := backend.Outgoing{Key: d.Key, Payload: []byte("more"), DeliverTime: duetime.Mark(m.Now())}
	tx := settle.Tx{
		Queue:    m,
		Delivery: d,
		Body: func(ctx context.Context, tx backend.Tx) error {
			if err := tx.(backend.LedgerTx).Bury(ctx, d, backend.DeadLetter{Reason: string(d.Payload)}); err != nil || string(d.Payload) == "more" {
				return err
			}
			return tx.Send(ctx, more)
		},
		MaxRuns:        10,
		CommitTimeout:  time.Second,
		ResolveTimeout: 10 * time.Second,
	}
	tx.Run(ctx)
}
