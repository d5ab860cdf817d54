package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// teller tells the story.
type teller struct {
	settings
	out    io.Writer
	e      *emulator.Emulator
	client *spanner.Client
	queue  *queue.Queue
}

func story(ctx context.Context, s settings, out io.Writer) (err error) {
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true, Front: front.Options{LeaseLength: s.lease}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.CreateDatabase(ctx, s.worker.database); err != nil {
		return err
	}
	admin, err := database.NewDatabaseAdminClient(ctx, e.ClientOptions()...)
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := schema.Apply(ctx, admin, s.worker.database, elements()...); err != nil {
		return err
	}
	client, err := connect(ctx, e.Addr(), s.worker.database)
	if err != nil {
		return err
	}
	defer client.Close()
	q, err := queue.New(client, requests)
	if err != nil {
		return err
	}
	t := &teller{settings: s, out: out, e: e, client: client, queue: q}
	fmt.Fprintf(out, "a report takes %v, a lease lasts %v; three reports are made, which takes about %v\n", s.report(), s.lease, s.takes())
	for _, act := range []struct {
		report, title string
		make          func(context.Context, string) error
	}{
		{"renewed", "the lease is renewed while the report is made", func(ctx context.Context, report string) error {
			return t.inProcess(ctx, report, byRenewal(s, t.bar))
		}},
		{"deferred", "the message is deferred beyond the report, and nothing is renewed", func(ctx context.Context, report string) error {
			return t.inProcess(ctx, report, byDeferral(s, t.bar))
		}},
		{"checkpointed", "each part is saved with the message; the worker is killed half way", t.killed},
	} {
		fmt.Fprintf(out, "\n%s: %s\n", act.report, act.title)
		if err := t.request(ctx, act.report); err != nil {
			return err
		}
		if err := act.make(ctx, act.report); err != nil {
			return fmt.Errorf("%s: %w", act.report, err)
		}
		if err := t.check(ctx, act.report); err != nil {
			return fmt.Errorf("%s: %w", act.report, err)
		}
	}
	return nil
}

func (t *teller) request(ctx context.Context, report string) error {
	return t.queue.Send(ctx, []queue.Outgoing{{Key: spanner.Key{report}}})
}

// inProcess makes the report by a worker in this process.
func (t *teller) inProcess(ctx context.Context, report string, h processor.Handler) error {
	p, err := newProcessor(t.client, t.settings, h)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ran := make(chan error, 1)
	go func() {
		err := p.Run(ctx)
		stop(err) // nobody waits for a worker that has ended
		ran <- err
	}()
	waited := t.wait(ctx, report)
	stop(nil)
	if err := errors.Join(<-ran, waited); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "made; its lease was renewed %s, counting the time before the work began\n", times(p.Figures().Receiver.Renewed))
	return nil
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// killed makes the report by workers in processes of their own. The first is killed when half of the parts are made.
func (t *teller) killed(ctx context.Context, report string) error {
	made := map[int]int{}
	first, err := t.start(ctx)
	if err != nil {
		return err
	}
	err = t.watch(first, t.parts/2, made)
	first.kill()
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "the worker is killed with SIGKILL; another one has the message in %v, when the time of the last checkpoint is over\n", t.longest())
	second, err := t.start(ctx)
	if err != nil {
		return err
	}
	defer second.kill()
	if err := t.watch(second, t.parts-t.parts/2, made); err != nil {
		return err
	}
	if err := t.wait(ctx, report); err != nil {
		return err
	}
	for part, n := range made {
		if n != 1 {
			return fmt.Errorf("part %d was made %s", part, times(int64(n)))
		}
	}
	fmt.Fprintln(t.out, "made, and no finished part twice")
	return nil
}

// watch shows the next parts that the worker makes, and counts them.
func (t *teller) watch(c *child, parts int, made map[int]int) error {
	for range parts {
		part, err := c.next()
		if err != nil {
			return err
		}
		made[part]++
		t.bar(part)
	}
	return nil
}
