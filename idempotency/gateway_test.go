package idempotency_test

import (
	"context"
	"sync"
)

// gateway stands for a payment provider. It knows repetitions by key, as good
// providers do, unless it is made not to.
type gateway struct {
	forgetful bool // charges again for a key it has seen

	mu      sync.Mutex
	calls   int
	charges []string          // ids, one for each charge made
	byKey   map[string]string // key to id
}

type charge struct{ ID string }

func (g *gateway) charge(_ context.Context, key string) (charge, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	if id, seen := g.byKey[key]; seen && !g.forgetful {
		return charge{id}, nil
	}
	id := "ch_" + string(rune('a'+len(g.charges)))
	g.charges = append(g.charges, id)
	if g.byKey == nil {
		g.byKey = map[string]string{}
	}
	g.byKey[key] = id
	return charge{id}, nil
}

// find answers what a reconcile hook asks.
func (g *gateway) find(_ context.Context, key string) (charge, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := g.byKey[key]
	return charge{id}, ok, nil
}

func (g *gateway) counts() (calls, charges int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls, len(g.charges)
}
