package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/api/option"
)

const (
	matrixLease          = time.Second
	matrixHandlerTimeout = 10 * time.Second
	// matrixDeferral is short, since what a lost deferral has moved is waited for.
	matrixDeferral = 5 * time.Second
	// cellLimit is how long a cell may take. The longest wait is Google's own: 30 s for a Rollback that is not answered.
	cellLimit = 2 * time.Minute
	// stopLimit is how long Run may take to return, and idleLimit how long a fault may take that comes after everything.
	stopLimit = 10 * time.Second
	idleLimit = 3 * time.Second
)

// cell is one handler, one RPC, one fault, and a seed.
type cell struct {
	kind  handlerKind
	site  site
	fault matrixFault
	seed  uint64
}

func (c *cell) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", c.kind, c.site.name, c.fault.name, c.seed)
}

// result is how a cell went.
type cellResult struct {
	cell  *cell
	took  time.Duration
	err   error
	log   string // of the processor
	again int    // how often it was run again because its fault had not been applied
}

// run is the cell: it sends messages, lets a processor handle them while the fault is applied, and judges what is left.
func (c *cell) run(ctx context.Context, b *cellEmulator) (log string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cellLimit, fmt.Errorf("not over after %v", cellLimit))
	defer cancel()
	db, err := b.database(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	client, err := spanner.NewClientWithConfig(ctx, db.name, spanner.ClientConfig{DisableNativeMetrics: true},
		append(b.ClientOptions(), option.WithGRPCConnectionPool(1))...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	q, err := queue.New(client, testQueue, queue.LeaseLength(matrixLease))
	if err != nil {
		return "", err
	}

	plan := c.plan()
	if err := q.Send(ctx, c.messages(plan)); err != nil {
		return "", err
	}
	if c.site.scene.stale {
		if err := c.leaveRecords(ctx, client, plan); err != nil {
			return "", err
		}
	}
	faults := b.Front().Faults()
	for _, lead := range c.site.scene.leads {
		lead.Database = db.name
		defer faults.Add(lead).Remove()
	}
	rule := c.site.where
	rule.Name, rule.Database, rule.Nth, rule.Times, rule.Do = fmt.Sprint(c), db.name, plan.nth, plan.times, c.fault.do(plan.lasts)
	w := &cellWork{queue: q, fault: faults.Add(rule)}
	defer w.fault.Remove()

	var lines logs
	w.Processor, err = processor.New(q, c.handler(w), c.config(plan, slog.New(slog.NewTextHandler(&lines, nil))))
	if err != nil {
		return "", err
	}
	err = c.work(ctx, w, db, plan)
	return lines.String(), err
}

// messages are those that the cell sends.
func (c *cell) messages(p plan) []queue.Outgoing {
	all := make([]queue.Outgoing, p.messages)
	for i := range all {
		all[i] = queue.Outgoing{Key: spanner.Key{fmt.Sprint("m", i)}, Payload: []byte(firstPayload)}
		if c.site.scene.old {
			// The mark of a message that was sent again: the database would not take a time that is past.
			all[i].DeliverTime = time.Now().Add(matrixLease).Truncate(time.Microsecond).Add(7)
		}
	}
	return all
}

// tagCell is the tag of the cell's own transaction.
const tagCell = "cell"

// leaveRecords puts down what messages with the same keys would have left that were to be retried much later, and were purged.
func (c *cell) leaveRecords(ctx context.Context, client *spanner.Client, p plan) error {
	q := schema.Attempts{Queue: testQueue}
	names := q.Columns()
	var rows []*spanner.Mutation
	for i := range p.messages {
		rows = append(rows, spanner.Insert(q.TableName(),
			[]string{"Id", names.DeliverTime, names.Starts, names.Errors, names.Deferrals, names.FirstAt, names.LastAt},
			[]any{fmt.Sprint("m", i), time.Now().Add(time.Hour), 0, 20, 0, spanner.CommitTimestamp, spanner.CommitTimestamp}))
	}
	_, err := client.Apply(ctx, rows, spanner.TransactionTag(tagCell))
	return err
}

func (c *cell) config(p plan, log *slog.Logger) processor.Config {
	config := processor.Config{
		Concurrency:    p.concurrency,
		MaxBatch:       3,
		HandlerTimeout: matrixHandlerTimeout,
		CommitTimeout:  500 * time.Millisecond,
		DrainTimeout:   time.Second,
		Backoff:        processor.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Logger:         log,
	}
	if c.site.scene.dies {
		config.MaxAttempts = 1
	}
	switch {
	case c.blames():
		config.HandlerTimeout = time.Second
	case c.site.scene.defers:
		config.HandlerTimeout = matrixDeferral
	}
	config.Receiver.MaxDuration = time.Second
	config.Receiver.LowWater = 8 // all messages come by one stream
	return config
}

// work runs the processor until the messages are handled and the fault was applied, and judges.
func (c *cell) work(ctx context.Context, w *cellWork, db *cellDatabase, plan plan) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	release := time.AfterFunc(cellLimit, w.fault.Release)
	defer release.Stop()
	go func() {
		if w.fault.Wait(running) == nil {
			release.Reset(plan.lasts)
		}
	}()

	waitErr := c.untilDone(ctx, w, db)
	stop()
	select {
	case err := <-ended:
		if err != nil {
			waitErr = errors.Join(waitErr, fmt.Errorf("Run returned: %w", err))
		}
	case <-time.After(stopLimit):
		return errors.Join(waitErr, fmt.Errorf("Run did not return within %v", stopLimit))
	}
	if errors.Is(waitErr, errNotApplied) {
		return waitErr
	}
	if wrong := c.judge(context.WithoutCancel(ctx), w, db, plan); wrong != nil {
		return errors.Join(wrong, waitErr)
	}
	return waitErr
}

// errNotApplied says that the fault was not applied, so that the cell has shown nothing. A machine that is busy may be to
// blame: a message was sent later than it was to come due, say, or a client had left before the answer came that it was
// to lose.
var errNotApplied = errors.New("the fault was not applied")

// untilDone waits until the queue is empty, the fault was applied and nothing is in a slot of the processor any more. A
// fault that was not applied a while after everything else is not waited for: only streams are opened again then.
func (c *cell) untilDone(ctx context.Context, w *cellWork, db *cellDatabase) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var look, idle time.Time
	for {
		select {
		case <-ctx.Done():
			late := fmt.Errorf("%w: the fault was applied %d times to %d calls; %+v", context.Cause(ctx), w.fault.Applied(), w.fault.Matched(), w.Figures())
			if w.fault.Applied() == 0 {
				return fmt.Errorf("%w: %w", errNotApplied, late)
			}
			return late
		case <-tick.C:
		}
		f := w.Figures().Receiver
		if f.InHand > 0 || f.HandedOut == 0 || time.Now().Before(look) {
			continue
		}
		left, err := db.left(ctx)
		if err != nil {
			return err
		}
		look = time.Now().Add(100 * time.Millisecond)
		switch {
		case left > 0:
			idle = time.Time{}
		case w.fault.Applied() > 0:
			return nil
		case idle.IsZero():
			idle = time.Now()
		case time.Since(idle) > idleLimit:
			return fmt.Errorf("%w: %d calls matched", errNotApplied, w.fault.Matched())
		}
	}
}
