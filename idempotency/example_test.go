package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/idempotency"
)

// A client orders a ride, gets no answer, and orders again with the same key.
func Example() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	ctx := context.Background()

	order := func(key, body string) {
		fp, err := idempotency.FingerprintJSON([]byte(body))
		if err != nil {
			log.Fatal(err)
		}
		// The scope is who has been authenticated, never what the request says.
		op := idempotency.Operation{Scope: "customer-7", Name: "order ride", Key: key}
		receipt, err := store.Do(ctx, op, fp, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			err := insertRide(tx, key, "ride-1")
			return idempotency.Result{Code: 201, Type: "text/plain", Version: 1, Body: []byte("ride-1 is on its way")}, err
		})
		if errors.Is(err, idempotency.ErrMismatch) {
			fmt.Println("422: this key was used for another request")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s (replayed: %v)\n", receipt.Code, receipt.Body, receipt.Replayed)
	}
	order("k-1", `{"from": "Zurich", "to": "Bern"}`)
	order("k-1", `{"to":"Bern","from":"Zurich"}`)
	order("k-1", `{"from": "Zurich", "to": "Basel"}`)
	// Output:
	// 201: ride-1 is on its way (replayed: false)
	// 201: ride-1 is on its way (replayed: true)
	// 422: this key was used for another request
}

// A refusal is an answer too: it is kept, and the effect's writes are not.
func ExampleRefuse() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	op := idempotency.Operation{Scope: "customer-7", Name: "order ride", Key: "k-1"}
	for range 2 {
		receipt, err := store.Do(context.Background(), op, idempotency.FingerprintBytes([]byte("Zurich")),
			func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				if err := insertRide(tx, "k-1", "ride-1"); err != nil {
					return idempotency.Result{}, err
				}
				return idempotency.Result{}, idempotency.Refuse(idempotency.Result{Code: 409, Body: []byte("no car is free")})
			})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s (refused: %v, replayed: %v)\n", receipt.Code, receipt.Body, receipt.Refused, receipt.Replayed)
	}
	// Output:
	// 409: no car is free (refused: true, replayed: false)
	// 409: no car is free (refused: true, replayed: true)
}

// A ride is stored, then charged at a provider, then confirmed. The process
// dies after the charge; the retry charges nothing.
func ExampleStore_Steps() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	op := idempotency.Operation{Scope: "customer-7", Name: "order ride", Key: "k-1"}

	order := func(dies bool) {
		receipt, err := store.Steps(context.Background(), op, idempotency.FingerprintBytes([]byte("Zurich")),
			func(ctx context.Context, run *idempotency.Run) error {
				ride, err := idempotency.Local(ctx, run, "ride", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (string, error) {
					fmt.Println("- store the ride")
					return "ride-1", insertRide(tx, "k-1", "ride-1")
				})
				if err != nil {
					return err
				}
				charge, err := idempotency.Outside[string]{
					Call: func(ctx context.Context, key string) (string, error) {
						fmt.Println("- charge the card, with a key of", len(key), "digits")
						return "charge-1", nil
					},
				}.Step(ctx, run, "charge")
				if err != nil {
					return err
				}
				if dies {
					return errors.New("connection to the customer lost")
				}
				return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					fmt.Println("- confirm")
					return idempotency.Result{Code: 201, Body: []byte(ride + ", " + charge)}, nil
				})
			})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d: %s\n", receipt.Code, receipt.Body)
	}
	order(true)
	order(false)
	order(false)
	// Output:
	// - store the ride
	// - charge the card, with a key of 64 digits
	// connection to the customer lost
	// - confirm
	// 201: ride-1, charge-1
	// 201: ride-1, charge-1
}

// A provider that does not know repeated requests: the call is made at most
// once, and after an unknown outcome somebody has to ask.
func ExampleOutside_reconcile() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	op := idempotency.Operation{Scope: "customer-7", Name: "pay out", Key: "k-1"}

	sent := map[string]string{} // what the provider has done, by our reference
	payOut := idempotency.Outside[string]{
		AtMostOnce: true,
		Call: func(_ context.Context, key string) (string, error) {
			fmt.Println("- send the money")
			sent[key] = "transfer-1"
			return "", idempotency.Uncertain(errors.New("no answer"))
		},
		Reconcile: func(_ context.Context, key string) (string, bool, error) {
			fmt.Println("- look for our reference in the provider's statement")
			id, found := sent[key]
			return id, found, nil
		},
	}
	for range 2 {
		receipt, err := store.Steps(context.Background(), op, idempotency.FingerprintBytes([]byte("100 CHF")),
			func(ctx context.Context, run *idempotency.Run) error {
				id, err := payOut.Step(ctx, run, "transfer")
				if err != nil {
					return err
				}
				return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					return idempotency.Result{ResourceID: id}, nil
				})
			})
		fmt.Println(receipt.ResourceID, errors.Is(err, idempotency.ErrUncertain))
	}
	// Output:
	// - send the money
	//  true
	// - look for our reference in the provider's statement
	// transfer-1 false
}

// An operation inside a transaction of one's own: what else the transaction
// writes is kept with the effect and the receipt, or not at all.
func ExampleStore_Claim() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	ctx := context.Background()
	op := idempotency.Operation{Scope: "partner-3", Name: "import ride", Key: "row-17"}

	// Outside the function, which may run several times.
	claim, err := store.Claim(op, idempotency.FingerprintBytes([]byte("row 17")))
	if err != nil {
		log.Fatal(err)
	}
	var receipt idempotency.Receipt
	_, err = client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var err error
		receipt, err = claim.Do(ctx, tx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return idempotency.Result{ResourceID: "ride-17"}, insertRide(tx, "row-17", "ride-17")
		})
		return err
	}, idempotency.TransactionOptions(spanner.TransactionOptions{TransactionTag: "import"}))
	if err != nil {
		// It may have landed all the same. ErrNoRecord says that it has not yet,
		// and that running it again with this claim is safe.
		receipt, err = claim.Resolve(ctx)
	}
	fmt.Println(receipt.ResourceID, err)
	// Output: ride-17 <nil>
}

// Claim.Do gives a refusal back as an error, since only the caller can drop
// the rest of the transaction. The refusal is then kept in a second one.
func ExampleClaim_Refuse() {
	client, done := exampleDatabase()
	defer done()
	ctx := context.Background()
	op := idempotency.Operation{Scope: "partner-3", Name: "import ride", Key: "row-18"}
	claim, err := exampleStore(client).Claim(op, idempotency.FingerprintBytes([]byte("row 18")))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := claim.Do(ctx, tx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return idempotency.Result{}, idempotency.Refuse(idempotency.Result{Body: []byte("no such customer")})
		})
		return err
	})
	var refusal *idempotency.Refusal
	if errors.As(err, &refusal) {
		_, err = client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := claim.Refuse(ctx, tx, refusal)
			return err
		})
	}
	if err != nil {
		log.Fatal(err)
	}
	receipt, err := claim.Resolve(ctx)
	fmt.Println(receipt.Refused, string(receipt.Body), err)
	// Output: true no such customer <nil>
}

// Polling for a result, without locks.
func ExampleStore_Lookup() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	ctx := context.Background()
	op := idempotency.Operation{Scope: "customer-7", Name: "order ride", Key: "k-1"}
	_, err := store.Lookup(ctx, op)
	fmt.Println(errors.Is(err, idempotency.ErrNoRecord))

	_, _ = store.Steps(ctx, op, idempotency.FingerprintBytes(nil), func(ctx context.Context, run *idempotency.Run) error {
		_, err := store.Lookup(ctx, op)
		after, inProgress := idempotency.RetryAfter(err)
		fmt.Println(inProgress, after > 0 && after <= 30*time.Second)
		return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return idempotency.Result{Code: 201}, nil
		})
	})
	receipt, err := store.Lookup(ctx, op)
	fmt.Println(receipt.Code, err)
	// Output:
	// true
	// true true
	// 201 <nil>
}

// A message that was first sent three days ago is redriven by hand: its
// operation is not remembered any more.
func ExampleStore_Covers() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	firstSent := time.Now().Add(-72 * time.Hour)
	if err := store.Covers(context.Background(), firstSent); errors.Is(err, idempotency.ErrExpired) {
		fmt.Println("not redriven: it could take effect twice; use --force")
	}
	// Output: not redriven: it could take effect twice; use --force
}

// One sweep, as from cron. A process that stays calls Run.
func ExampleReaper_Sweep() {
	client, done := exampleDatabase()
	defer done()
	store := exampleStore(client)
	reaper, err := store.Reaper(idempotency.ReaperConfig{Batch: 200})
	if err != nil {
		log.Fatal(err)
	}
	swept, err := reaper.Sweep(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(swept.Deleted, "deleted,", swept.Records, "left,", len(swept.Unfinished), "without an owner")
	// Output: 0 deleted, 0 left, 0 without an owner
}

// What belongs to a request besides its body is added part by part.
func ExampleFingerprint_With() {
	body, err := idempotency.FingerprintJSON([]byte(`{"amount": 1200}`))
	if err != nil {
		log.Fatal(err)
	}
	same, err := idempotency.FingerprintOf(struct {
		Amount int `json:"amount"`
	}{1200})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(body == same)
	fmt.Println(body.With("POST", "/rides/{id}/tip", "17") == body.With("POST", "/rides/{id}/tip", "18"))
	// Output:
	// true
	// false
}
