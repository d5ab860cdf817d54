// Package mailserver takes mails over HTTP. It imports nothing but the standard
// library. POST /mails with a Message-Key delivers one mail for each key,
// however often it comes. It fails as the gateway does, by a seed.
package mailserver

import (
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
)

// Mail is one mail.
type Mail struct {
	To   string `json:"to"`
	Trip string `json:"trip"`
	Text string `json:"text"`
}

// Server is the server. Make one with New.
type Server struct {
	failing float64

	mu         sync.Mutex
	random     *rand.Rand
	deliveries int
	byKey      map[string]Mail
}

// New makes a server at which the given share of the deliveries fails: a third
// each before the mail is taken, after it, and without an answer.
func New(seed uint64, failing float64) *Server {
	return &Server{failing: failing, random: rand.New(rand.NewPCG(seed, 0x3a11)), byKey: map[string]Mail{}}
}

// Deliveries counts the mails as often as they came.
func (s *Server) Deliveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries
}

// Mails returns the distinct mails.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byKey))
}

// ServeHTTP answers POST /mails.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m Mail
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	key := r.Header.Get("Message-Key")
	if err != nil || key == "" || json.Unmarshal(body, &m) != nil {
		http.Error(w, "a mail needs a Message-Key and a body", http.StatusBadRequest)
		return
	}
	switch s.take(key, m) {
	case 0:
		w.WriteHeader(http.StatusAccepted)
	case 1, 2:
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		panic(http.ErrAbortHandler)
	}
}

// take says how the delivery fails: 0, not; 1, before; 2, after; 3, without an
// answer.
func (s *Server) take(key string, m Mail) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries++
	how := 0
	if s.random.Float64() < s.failing {
		how = 1 + s.random.IntN(3)
	}
	if how != 1 {
		s.byKey[key] = m
	}
	return how
}
