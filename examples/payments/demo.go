package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/examples/payments/gateway"
	"github.com/spanqueue/spanqueue/examples/payments/mailserver"
)

const (
	// customersAtOnce is how many bookings are under way.
	customersAtOnce = 24
	// outage is how long the gateway is away, half way.
	outage = 3 * time.Second
	// timeLimit ends a run that does not come to its end by itself.
	timeLimit = 2 * time.Minute
)

// persistent is how the app comes again. It outlasts the outage.
var persistent = backoff{attempts: 15, min: 100 * time.Millisecond, max: 2 * time.Second}

// result is all that is known when a run is over.
type result struct {
	bookings   []*booking
	verdict    verdict
	app        appFigures
	gateway    gateway.Figures
	charges    int
	deliveries int // of mails
	mails      int // distinct
	aborts     int
	lost       int // commits without an answer
	outage     time.Duration
	took       time.Duration
}

// play is the whole run.
func play(ctx context.Context, o options, out io.Writer, log *slog.Logger) (r *result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done within %v", timeLimit))
	defer cancel()
	db, err := openDatabase(ctx, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.close()) }()

	pay, post := gateway.New(o.seed, gatewayFaults), mailserver.New(o.seed, mailsFailing)
	var servers []*server
	stop := sync.OnceValue(func() error {
		var errs []error
		for i := len(servers) - 1; i >= 0; i-- {
			errs = append(errs, servers[i].stop())
		}
		return errors.Join(errs...)
	})
	defer func() { err = errors.Join(err, stop()) }()
	start := func(h http.Handler) (string, error) {
		s, err := serve(h, log)
		if err != nil {
			return "", err
		}
		servers = append(servers, s)
		return s.url, nil
	}
	client, closeClient := newHTTPClient()
	defer closeClient()

	payURL, err := start(pay)
	if err != nil {
		return nil, err
	}
	postURL, err := start(post)
	if err != nil {
		return nil, err
	}
	service := &rides{outbox: db.outbox, payment: payment{client, payURL}}
	var api http.Handler = &unprotected{db.client, service}
	if !o.unprotected {
		if api, err = newAPI(db.client, operations, service, log); err != nil {
			return nil, err
		}
	}
	apiURL, err := start(api)
	if err != nil {
		return nil, err
	}

	r = &result{bookings: newBookings(o.rides, o.seed)}
	phone, closePhone := newHTTPClient()
	defer closePhone()
	d := &demo{
		db: db, gateway: pay, mailer: mailer{client, postURL}, out: out, log: log,
		app: &app{http: phone, url: apiURL, keyless: o.unprotected, backoff: persistent},
	}
	fmt.Fprintf(out, "%d rides are booked, %d at a time; seed %d\n", o.rides, customersAtOnce, o.seed)
	began := time.Now()
	f := inject(db, o.seed)
	if err := d.work(ctx, r); err != nil {
		return nil, err
	}
	closePhone()
	if err := stop(); err != nil { // waits for handlers whose clients have gone
		return nil, err
	}
	r.took = time.Since(began)
	db.faults().Clear()
	r.app, r.gateway, r.charges = d.app.counted(), pay.Figures(), len(pay.Charges())
	r.deliveries, r.mails = post.Deliveries(), len(post.Mails())
	r.aborts, r.lost = f.aborted.Applied(), f.lostAnswers()
	l, err := readLedger(ctx, db.client, pay.Charges(), post.Mails())
	if err != nil {
		return nil, err
	}
	r.verdict = judge(r.bookings, l)
	return r, nil
}

// demo is who takes part in a run.
type demo struct {
	db      *database
	gateway *gateway.Gateway
	mailer  mailer
	app     *app
	out     io.Writer
	log     *slog.Logger
}

// work books all rides and waits for their mails. When it returns, all that it
// started has ended.
func (d *demo) work(ctx context.Context, r *result) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worker, err := newMailWorker(d.db.outbox, d.mailer, d.log)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	if err := d.bookAll(ctx, r); err != nil {
		return err
	}
	return d.waitForMails(ctx)
}

// bookAll books the rides, and takes the gateway away half way.
func (d *demo) bookAll(ctx context.Context, r *result) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan *booking, len(r.bookings))
	for _, b := range r.bookings {
		todo <- b
	}
	close(todo)
	var done atomic.Int64
	half := make(chan struct{})
	var crowd sync.WaitGroup
	for range customersAtOnce {
		crowd.Go(func() {
			for b := range todo {
				if ctx.Err() != nil {
					return
				}
				if _, err := d.app.book(ctx, b); err != nil {
					cancel(err)
					return
				}
				if done.Add(1) == int64(len(r.bookings)/2) {
					close(half)
				}
			}
		})
	}
	select {
	case <-half:
		r.outage = d.outage(ctx)
	case <-ctx.Done():
	}
	crowd.Wait()
	return context.Cause(ctx)
}

func (d *demo) outage(ctx context.Context) time.Duration {
	fmt.Fprintf(d.out, "half way: the gateway is away for %v\n", outage)
	began := time.Now()
	d.gateway.SetAway(true)
	defer d.gateway.SetAway(false)
	pause := time.NewTimer(outage)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return time.Since(began)
}

func (d *demo) waitForMails(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		stats, err := d.db.outbox.Stats(ctx)
		if err != nil {
			return err
		}
		if stats.Ready+stats.Delayed == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
