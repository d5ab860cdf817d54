package idempotencyhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
	"github.com/spanqueue/spanqueue/schema"
)

// Points are added in one transaction with the answer. A client that asks
// again with the same key gets the answer again.
func ExampleMiddleware_Tx() {
	mw, done := exampleMiddleware()
	defer done()
	mux := http.NewServeMux()
	mux.Handle("POST /points", mw.Tx("add points", func(w http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		var order struct{ Points int64 }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Points <= 0 {
			http.Error(w, "points are to be above zero", http.StatusBadRequest) // not kept
			return nil
		}
		err := tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Points", []string{"Id", "N"}, []any{"p-1", order.Points})})
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/points/p-1")
		w.WriteHeader(http.StatusCreated)
		_, err = fmt.Fprintf(w, "%d points", order.Points)
		return err
	}))

	post(mux, "/points", `"k-1"`, `{"Points": 0}`)
	post(mux, "/points", `"k-1"`, `{"Points": 5}`)
	post(mux, "/points", `"k-1"`, `{"Points":5}`)
	post(mux, "/points", `"k-1"`, `{"Points": 6}`)
	post(mux, "/points", "", `{"Points": 5}`)
	// Output:
	// 400: points are to be above zero
	// 201: 5 points
	// 201: 5 points (replayed)
	// 422: The Idempotency-Key was used for another request
	// 400: The Idempotency-Key header is missing
}

// A ride is charged outside the database. The charge's result is a recovery
// point: when what follows it fails, the next attempt makes no second call.
func ExampleMiddleware_Steps() {
	mw, done := exampleMiddleware()
	defer done()
	failing := true
	mux := http.NewServeMux()
	mux.Handle("POST /rides", mw.Steps("create ride", func(r *http.Request, s *idempotencyhttp.Steps) error {
		charge, err := idempotency.Outside[string]{
			Call: func(_ context.Context, key string) (string, error) {
				fmt.Println("- charge, with a key of", len(key), "digits")
				return "ch_1", nil
			},
		}.Step(r.Context(), s.Run, "charge")
		if err != nil {
			return err
		}
		if failing {
			return &idempotencyhttp.Problem{Status: http.StatusServiceUnavailable, Title: "No driver can be reached"}
		}
		return s.Complete(r.Context(), func(_ context.Context, _ *spanner.ReadWriteTransaction, w http.ResponseWriter) error {
			w.WriteHeader(http.StatusCreated)
			_, err := fmt.Fprint(w, "paid by ", charge)
			return err
		})
	}))

	post(mux, "/rides", `"k-1"`, `{}`)
	failing = false
	post(mux, "/rides", `"k-1"`, `{}`)
	post(mux, "/rides", `"k-1"`, `{}`)
	// Output:
	// - charge, with a key of 64 digits
	// 503: No driver can be reached
	// 201: paid by ch_1
	// 201: paid by ch_1 (replayed)
}

// post sends a request and prints the answer.
func post(h http.Handler, path, key, body string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, replayed := strings.TrimSpace(w.Body.String()), ""
	if w.Header().Get("Content-Type") == "application/problem+json" {
		var p idempotencyhttp.Problem
		if err := json.NewDecoder(w.Body).Decode(&p); err != nil && err != io.EOF {
			log.Fatal(err)
		}
		text = p.Title
	}
	if w.Header().Get("Idempotent-Replayed") == "true" {
		replayed = " (replayed)"
	}
	fmt.Printf("%d: %s%s\n", w.Code, text, replayed)
}

// exampleMiddleware starts an emulator. An application has its database already
// and creates the table with schema.Apply.
func exampleMiddleware() (mw *idempotencyhttp.Middleware, done func()) {
	ctx := context.Background()
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		log.Fatal(err)
	}
	const name = "projects/example/instances/example/databases/example"
	points := "CREATE TABLE Points (Id STRING(36) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)"
	if err := e.CreateDatabase(ctx, name, append(schema.Operations{}.Statements(), points)...); err != nil {
		log.Fatal(err)
	}
	client, err := spanner.NewClientWithConfig(ctx, name, spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	store, err := idempotency.New(client, schema.Operations{}, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mw, err = idempotencyhttp.New(store, idempotencyhttp.Config{
		// Who asks: from what has been authenticated, never from the order.
		Scope: func(*http.Request) (string, error) { return "customer-7", nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	return mw, func() {
		client.Close()
		if err := e.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
