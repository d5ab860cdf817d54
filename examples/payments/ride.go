package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
	"github.com/spanqueue/spanqueue/queue"
)

// order is the body of POST /rides.
type order struct {
	Trip  string `json:"trip"`
	Cents int64  `json:"cents"`
}

// ride is the answer, and what the mail is about.
type ride struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Trip     string `json:"trip"`
	Cents    int64  `json:"cents"`
	Charge   string `json:"charge,omitempty"`
}

// rides does what is asked for at /rides.
type rides struct {
	outbox  *queue.Queue
	payment payment
}

// create is the handler of POST /rides: the part to copy. Each step is a
// recovery point. Whatever breaks between two of them, the next attempt of the
// same request goes on behind the last one that has passed.
func (s *rides) create(r *http.Request, steps *idempotencyhttp.Steps) error {
	o, err := readOrder(r)
	if err != nil {
		return err
	}
	op, _ := idempotencyhttp.OperationOf(r)

	// 1. The ride.
	booked, err := idempotency.Local(r.Context(), steps.Run, "ride", func(_ context.Context, tx *spanner.ReadWriteTransaction) (ride, error) {
		booked := ride{ID: uuid.NewString(), Customer: op.Scope, Trip: o.Trip, Cents: o.Cents}
		return booked, insertRide(tx, booked, requestHash(op))
	})
	if spanner.ErrCode(err) == codes.AlreadyExists {
		// The record of this request is not there and its ride is: it has
		// expired, or somebody else owns the request too.
		return fmt.Errorf("%w: the ride of %v is there already: %w", idempotency.ErrExpired, op, err)
	}
	if err != nil {
		return err
	}

	// 2. The charge. The key is the same in each attempt.
	charge, err := idempotency.Outside[string]{
		Call: func(ctx context.Context, key string) (string, error) { return s.payment.charge(ctx, key, o) },
	}.Step(r.Context(), steps.Run, "charge")
	if err != nil {
		return err
	}
	booked.Charge = charge

	// 3. The receipt, the message for the mail, and the answer.
	return steps.Complete(r.Context(), func(_ context.Context, tx *spanner.ReadWriteTransaction, w http.ResponseWriter) error {
		if err := s.confirm(tx, booked); err != nil {
			return err
		}
		return writeRide(w, booked)
	})
}

func readOrder(r *http.Request) (order, error) {
	var o order
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(body, &o); err != nil || o.Trip == "" || o.Cents <= 0 {
		// Refused before anything was done: nothing is remembered.
		return o, &idempotencyhttp.Problem{Status: http.StatusBadRequest, Title: "An order needs a trip and a price above zero"}
	}
	return o, nil
}

// requestHash names the request in the application's own table, without
// showing the client's key.
func requestHash(op idempotency.Operation) string {
	sum := sha256.Sum256([]byte(op.Key))
	return hex.EncodeToString(sum[:])
}

func insertRide(tx *spanner.ReadWriteTransaction, r ride, request string) error {
	return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Rides",
		[]string{"RideId", "Customer", "Request", "Trip", "Cents", "Mailed"},
		[]any{r.ID, r.Customer, request, r.Trip, r.Cents, 0})})
}

// confirm writes what belongs to a ride that is paid.
func (s *rides) confirm(tx *spanner.ReadWriteTransaction, r ride) error {
	payload, err := json.Marshal(r)
	if err != nil {
		return err
	}
	mail, err := s.outbox.SendMutation(queue.Outgoing{Key: spanner.Key{r.ID}, Payload: payload})
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{
		spanner.Update("Rides", []string{"RideId", "ChargeId"}, []any{r.ID, r.Charge}),
		spanner.Insert("Receipts", []string{"RideId", "Trip", "ChargeId", "Cents"}, []any{r.ID, r.Trip, r.Charge, r.Cents}),
		mail,
	})
}

func writeRide(w http.ResponseWriter, r ride) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/rides/"+r.ID)
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(r)
}
