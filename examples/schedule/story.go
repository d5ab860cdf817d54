package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/grpc/codes"
)

const (
	timeLimit = 2 * time.Minute // ends a story that does not come to its end
	outage    = 3 * time.Second // how long there is no worker
)

// teller tells the story.
type teller struct {
	out       io.Writer
	client    *spanner.Client
	schedules *queue.Queue
	runs      *queue.Queue
	crew      *crew
}

// story starts an emulator and workers, kills workers, and checks at the end that each slot was run once.
func story(ctx context.Context, w worker, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done within %v", timeLimit))
	defer cancel()
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true, Front: front.Options{LeaseLength: w.lease}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := createDatabase(ctx, e); err != nil {
		return err
	}
	lost := loseAnswers(e.Front().Faults())
	w.addr = e.Addr()
	t := &teller{out: out, crew: &crew{like: w, running: make(chan *process), failed: failed}}
	if t.client, err = connect(ctx, w.addr); err != nil {
		return err
	}
	defer t.client.Close()
	if t.schedules, err = queue.New(t.client, schedules); err != nil {
		return err
	}
	if t.runs, err = queue.New(t.client, runs); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.crew.killAll()) }()
	if err := t.tell(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	t.say("meanwhile the database did not answer %d commits of the workers, which had landed", lost.Applied())
	return nil
}

// loseAnswers makes the database commit and then give an answer after which Google's client runs the function again. What
// is not guarded happens twice then.
func loseAnswers(set *fault.Set) *fault.Handle {
	return set.Add(fault.Rule{
		Method:      "Commit",
		Match:       func(c fault.Call) bool { return strings.HasPrefix(c.Tag, "queue=") }, // the processors'
		Probability: 0.2, Seed: 1,
		Do: fault.After(codes.Internal, "stream terminated by RST_STREAM"),
	})
}

func createDatabase(ctx context.Context, e *emulator.Emulator) error {
	if err := e.CreateDatabase(ctx, databaseName); err != nil {
		return err
	}
	admin, err := database.NewDatabaseAdminClient(ctx, e.ClientOptions()...)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = schema.Apply(ctx, admin, databaseName, elements()...)
	return err
}

func (t *teller) tell(ctx context.Context) error {
	first, err := t.begin(ctx)
	if err != nil {
		return err
	}
	t.say("3 workers, 2 schedules, each due every second; no worker is in charge")
	for range 3 {
		if err := t.crew.hire(); err != nil {
			return err
		}
	}
	if err := t.untilRan(ctx, 4); err != nil {
		return err
	}

	select {
	case p := <-t.crew.running:
		if err := t.crew.kill(p); err != nil {
			return err
		}
		t.say("%s is killed with SIGKILL in the middle of a run", p.name)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.untilRan(ctx, 4); err != nil {
		return err
	}

	if err := t.crew.killAll(); err != nil {
		return err
	}
	t.say("all workers are killed; for %v there is none", outage)
	if err := t.untilLate(ctx, outage); err != nil {
		return err
	}
	t.say("another worker starts")
	if err := t.crew.hire(); err != nil {
		return err
	}
	if err := t.untilRan(ctx, 8); err != nil {
		return err
	}
	return t.finish(ctx, first)
}

// finish turns the schedules off, lets the worker finish what is left, and compares.
func (t *teller) finish(ctx context.Context, first map[string]time.Time) error {
	var found []history
	for _, name := range names() {
		last, err := end(ctx, t.client, name)
		if err != nil {
			return err
		}
		found = append(found, history{schedule: wanted[name], name: name, first: first[name], end: last})
	}
	if err := poll(ctx, func() (bool, error) {
		s, err := t.runs.Stats(ctx)
		return s.Ready+s.Delayed == 0, err
	}); err != nil {
		return err
	}
	if err := t.crew.stop(); err != nil {
		return err
	}
	if err := readHistories(ctx, t.client, found); err != nil {
		return err
	}
	t.print(found)
	return judge(found)
}

func (t *teller) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// begin turns the schedules on and returns their first slots.
func (t *teller) begin(ctx context.Context) (map[string]time.Time, error) {
	first := map[string]time.Time{}
	for name, s := range wanted {
		if err := begin(ctx, t.schedules, name, s); err != nil {
			return nil, err
		}
	}
	messages, err := t.schedules.Peek(ctx, len(wanted))
	for _, m := range messages {
		first[m.Key[0].(string)] = m.DeliverTime
	}
	return first, err
}
