package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// booking is one ride that a customer wants, once.
type booking struct {
	order
	customer string
	// key is drawn once a booking: each attempt has the same.
	key         string
	doubleClick bool
	// patience is how long the first attempt waits for its answer.
	patience time.Duration
	random   *rand.Rand
}

const patient = 20 * time.Second

// newBookings draws n bookings by the seed. A third are double clicks, a third
// have less patience than the service needs.
func newBookings(n int, seed uint64) []*booking {
	bookings := make([]*booking, n)
	for i := range bookings {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		b := &booking{
			order:       order{Trip: fmt.Sprintf("trip-%04d", i+1), Cents: 500 + random.Int64N(5000)},
			customer:    fmt.Sprintf("customer-%02d", 1+random.IntN(20)),
			key:         uuid.NewString(),
			doubleClick: random.IntN(3) == 0,
			patience:    patient,
			random:      random,
		}
		if random.IntN(3) == 0 {
			b.patience = time.Duration(5+random.IntN(50)) * time.Millisecond
		}
		bookings[i] = b
	}
	return bookings
}

// app is the customers' app.
type app struct {
	http    *http.Client
	url     string
	keyless bool // sends no keys
	backoff backoff

	mu      sync.Mutex
	figures appFigures
}

// appFigures count what the app has sent and seen.
type appFigures struct {
	requests, doubleClicks, timeouts, retries int
	fresh, replays, conflicts, failures       int
}

func (a *app) count(f func(*appFigures)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.figures)
}

func (a *app) counted() appFigures {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.figures
}

// errGaveUp: all attempts are used up.
var errGaveUp = errors.New("gave up")

// book books a ride and returns its id, the same for both clicks of a double
// click.
func (a *app) book(ctx context.Context, b *booking) (string, error) {
	if !b.doubleClick {
		return a.click(ctx, b, rand.New(rand.NewPCG(b.random.Uint64(), 1)))
	}
	a.count(func(f *appFigures) { f.doubleClicks++ })
	var ids [2]string
	var errs [2]error
	var clicks sync.WaitGroup
	for i := range ids {
		random := rand.New(rand.NewPCG(b.random.Uint64(), uint64(i)))
		clicks.Go(func() { ids[i], errs[i] = a.click(ctx, b, random) })
	}
	clicks.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	if ids[0] != ids[1] && !a.keyless {
		return "", fmt.Errorf("%s: one click was told ride %s, the other ride %s", b.Trip, ids[0], ids[1])
	}
	return ids[0], nil
}

// click sends the order until it is answered.
func (a *app) click(ctx context.Context, b *booking, random *rand.Rand) (string, error) {
	patience := b.patience
	for n := 1; ; n++ {
		id, after, err := a.attempt(ctx, b, patience)
		if err == nil {
			return id, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if n == a.backoff.attempts || after < 0 {
			return "", fmt.Errorf("%s: %w after %d attempts: %w", b.Trip, errGaveUp, n, err)
		}
		patience = patient
		a.count(func(f *appFigures) { f.retries++ })
		pause := time.NewTimer(a.backoff.delay(n, after, random))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// attempt sends the order once. With an error it says how long the service asks
// to wait; below zero, that it is of no use to come again.
func (a *app) attempt(ctx context.Context, b *booking, patience time.Duration) (string, time.Duration, error) {
	a.count(func(f *appFigures) { f.requests++ })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(b.order)
	if err != nil {
		return "", -1, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/rides", strings.NewReader(string(body)))
	if err != nil {
		return "", -1, err
	}
	req.GetBody = nil // attempts are counted here
	req.Header.Set("Authorization", "Bearer token-of-"+b.customer)
	req.Header.Set("Content-Type", "application/json")
	if !a.keyless {
		req.Header.Set("Idempotency-Key", `"`+b.key+`"`)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		a.count(func(f *appFigures) { f.timeouts++ })
		return "", 0, err
	}
	defer resp.Body.Close()
	return a.answered(resp)
}

func (a *app) answered(resp *http.Response) (string, time.Duration, error) {
	switch {
	case resp.StatusCode == http.StatusCreated:
		var r ride
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
			return "", 0, err
		}
		a.count(func(f *appFigures) {
			if resp.Header.Get("Idempotent-Replayed") == "true" {
				f.replays++
			} else {
				f.fresh++
			}
		})
		return r.ID, 0, nil
	case resp.StatusCode == http.StatusConflict:
		a.count(func(f *appFigures) { f.conflicts++ })
	case resp.StatusCode >= http.StatusInternalServerError:
		a.count(func(f *appFigures) { f.failures++ })
	default:
		return "", -1, errors.New(resp.Status)
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		seconds = 0
	}
	return "", time.Duration(seconds) * time.Second, errors.New(resp.Status)
}
