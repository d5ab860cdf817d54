package main

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
)

// unprotected is the service as it is often written: it does what it is asked
// for, as often as it is asked. It runs under the same faults, behind the same
// app, which has no key to send then.
type unprotected struct {
	client *spanner.Client
	rides  *rides
}

func (u *unprotected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, err := customer(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	o, err := readOrder(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	booked, err := u.book(r.Context(), ride{ID: uuid.NewString(), Customer: who, Trip: o.Trip, Cents: o.Cents}, o)
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	_ = writeRide(w, booked)
}

func (u *unprotected) book(ctx context.Context, r ride, o order) (ride, error) {
	_, err := u.client.ReadWriteTransaction(ctx, func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
		return insertRide(tx, r, r.ID)
	})
	if err != nil {
		return r, err
	}
	if r.Charge, err = u.rides.payment.charge(ctx, uuid.NewString(), o); err != nil {
		return r, err
	}
	_, err = u.client.ReadWriteTransaction(ctx, func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
		return u.rides.confirm(tx, r)
	})
	return r, err
}
