package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// payment is the client of the gateway. It tries once: whoever sends the
// request again, the customer's app, makes the next call, and no layer between.
type payment struct {
	http *http.Client
	url  string
}

const paymentTimeout = 5 * time.Second

func (p payment) charge(ctx context.Context, key string, o order) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, paymentTimeout)
	defer cancel()
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.GetBody = nil // or net/http would send it again by itself, because it has a key
	req.Header.Set("Idempotency-Key", key)
	resp, err := p.http.Do(req)
	if err != nil {
		return "", tryLater(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return "", tryLater(fmt.Errorf("the gateway answered %s", resp.Status))
	}
	var charge struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&charge); err != nil {
		return "", tryLater(err)
	}
	return charge.ID, nil
}

// tryLater says that the charge may or may not have been made, which need not
// be known: the gateway knows repetitions by key, so calling again is safe.
func tryLater(err error) error {
	return fmt.Errorf("%w: %w", &idempotencyhttp.Problem{
		Status: http.StatusServiceUnavailable, Title: "The payment could not be made now",
		Header: http.Header{"Retry-After": {"1"}},
	}, err)
}
