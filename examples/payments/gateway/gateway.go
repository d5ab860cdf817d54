// Package gateway is a payment provider: an HTTP server that stands for one
// somewhere else. It imports nothing but the standard library, and knows of its
// clients only what they send.
//
// POST /charges with an Idempotency-Key makes one charge for each key, and
// answers a repetition with the first charge; a key that comes with another
// body is answered 422. It fails, by a seed: before it has charged, after it,
// and without an answer.
package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Faults are the shares of the calls that meet each.
type Faults struct {
	Before float64 // nothing is charged, and the answer is 503
	After  float64 // the charge is made, and the answer is 500
	Lost   float64 // the charge is made, and the connection is closed
}

// Charge is money taken.
type Charge struct {
	ID    string `json:"id"`
	Trip  string `json:"trip"`
	Cents int64  `json:"cents"`
}

// Figures count what the gateway has met with.
type Figures struct {
	Calls, Repeated     int // repeated: calls that were answered with an earlier charge
	Before, After, Lost int
	// Away are the times of the calls that came while it was away.
	Away []time.Time
}

// Gateway is the server. Make one with New.
type Gateway struct {
	faults Faults

	mu      sync.Mutex
	random  *rand.Rand
	away    bool
	figures Figures
	charges []Charge
	byKey   map[string]made
}

type made struct {
	body   string
	charge Charge
}

// New makes a gateway that fails in the same way for the same seed.
func New(seed uint64, faults Faults) *Gateway {
	return &Gateway{faults: faults, random: rand.New(rand.NewPCG(seed, 0x9a7e)), byKey: map[string]made{}}
}

// SetAway begins or ends an outage, in which every call is answered 503.
func (g *Gateway) SetAway(away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
}

// Figures returns the counts so far.
func (g *Gateway) Figures() Figures {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.figures
	f.Away = slices.Clone(f.Away)
	return f
}

// Charges returns the charges so far.
func (g *Gateway) Charges() []Charge {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.charges)
}

// ServeHTTP answers POST /charges.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	if err != nil {
		return
	}
	switch status, charge := g.charge(r.Header.Get("Idempotency-Key"), string(body)); status {
	case lost:
		panic(http.ErrAbortHandler)
	case http.StatusCreated:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(charge)
	default:
		http.Error(w, http.StatusText(status), status)
	}
}

// lost is no status: the answer does not arrive.
const lost = 0

func (g *Gateway) charge(key, body string) (int, Charge) {
	var c Charge
	if key == "" || json.Unmarshal([]byte(body), &c) != nil || c.Cents <= 0 {
		return http.StatusBadRequest, c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Calls++
	if g.away {
		g.figures.Away = append(g.figures.Away, time.Now())
		return http.StatusServiceUnavailable, c
	}
	what := g.random.Float64()
	if what < g.faults.Before {
		g.figures.Before++
		return http.StatusServiceUnavailable, c
	}
	m, seen := g.byKey[key]
	switch {
	case seen && m.body != body:
		return http.StatusUnprocessableEntity, c
	case seen:
		g.figures.Repeated++
	default:
		c.ID = fmt.Sprintf("ch_%04d", len(g.charges)+1)
		m = made{body, c}
		g.byKey[key] = m
		g.charges = append(g.charges, c)
	}
	switch what -= g.faults.Before; {
	case what < g.faults.After:
		g.figures.After++
		return http.StatusInternalServerError, c
	case what < g.faults.After+g.faults.Lost:
		g.figures.Lost++
		return lost, c
	}
	return http.StatusCreated, m.charge
}
