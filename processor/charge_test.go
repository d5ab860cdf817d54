package processor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// gateway is a payment server that knows nothing of this library: it charges once for each Idempotency-Key, and answers a
// repetition with the first charge. It fails by a seed: before it charges, after it, or without an answer.
type gateway struct {
	mu      sync.Mutex
	random  *rand.Rand
	calls   int
	charges map[string]string // by key
	byOrder map[string]int
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	g.calls++
	before, after, lost := g.random.Float64() < 0.2, g.random.Float64() < 0.2, g.random.Float64() < 0.1
	key := r.Header.Get("Idempotency-Key")
	if !before && g.charges[key] == "" {
		g.charges[key] = fmt.Sprintf("charge-%d", len(g.charges)+1)
		g.byOrder[string(order)]++
	}
	charge := g.charges[key]
	g.mu.Unlock()
	switch {
	case before || after:
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case lost:
		panic(http.ErrAbortHandler)
	default:
		fmt.Fprint(w, charge)
	}
}

// Calls to the outside may repeat; with a key that all attempts share, charges never do, and the receipt is that of the one
// charge.
func TestChargesDoNotRepeat(t *testing.T) {
	t.Parallel()
	g := &gateway{random: rand.New(rand.NewPCG(1, 2)), charges: map[string]string{}, byOrder: map[string]int{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	w := newWorld(t, "CREATE TABLE Payments (Id STRING(64) NOT NULL, Charge STRING(64) NOT NULL) PRIMARY KEY (Id)")
	orders := ids(30)
	w.send(orders...)

	charge := processor.Call[string]{
		Call: func(ctx context.Context, h *lease.Held) (string, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(h.Message().Key[0].(string)))
			if err != nil {
				return "", err
			}
			req.Header.Set("Idempotency-Key", h.DownstreamKey("charge"))
			answer, err := server.Client().Do(req)
			if err != nil {
				return "", err
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return "", err
			}
			if answer.StatusCode != http.StatusOK {
				return "", errors.New(answer.Status)
			}
			return string(body), nil
		},
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, charge string) error {
			if err := addOne(ctx, tx, m); err != nil {
				return err
			}
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Payments", []string{"Id", "Charge"}, []any{m.Key[0], charge})})
		},
	}
	// Now and then a commit that landed or did not is answered with an error.
	h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Probability: 0.2, Seed: 7, Do: fault.After(codes.Internal, "broken")})
	a, b := w.handle(w.queue, charge), w.handle(w.openQueue(w.db.Client(t)), charge)
	wait(t, "all orders to be paid", func() bool {
		stats, err := w.queue.Stats(t.Context())
		require.NoError(t, err)
		return stats.Ready+stats.Delayed == 0
	})
	require.NoError(t, a.stop())
	require.NoError(t, b.stop())
	w.once(orders...)
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.charges, len(orders))
	for _, order := range orders {
		require.Equal(t, 1, g.byOrder[order], order)
	}
	require.Greater(t, g.calls, len(g.charges), "the run shows nothing unless calls were repeated")
	require.Positive(t, h.Applied())
	t.Logf("%d orders, %d calls, %d charges, %d lost commits", len(orders), g.calls, len(g.charges), h.Applied())
}
