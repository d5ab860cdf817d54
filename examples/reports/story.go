package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

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

func story(ctx context.Context, s settings, out io.Writer) error {
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true, Front: front.Options{LeaseLength: s.lease}})
	if err != nil {
		return err
	}
	defer e.Close()
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
	fmt.Fprintf(out, "a report takes %v, a lease lasts %v\n", time.Duration(s.parts)*s.part, s.lease)
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	if err := t.wait(ctx, report); err != nil {
		return err
	}
	stop()
	if err := <-ran; err != nil {
		return err
	}
	f := p.Figures()
	fmt.Fprintf(t.out, "made, with %d renewals of its lease\n", f.Receiver.Renewed)
	return nil
}

// killed makes the report by workers in processes of their own. The first is killed when half of the parts are made.
func (t *teller) killed(ctx context.Context, report string) error {
	made := map[string]int{}
	first, err := t.start(ctx)
	if err != nil {
		return err
	}
	for range t.parts / 2 {
		part, err := first.next()
		if err != nil {
			return err
		}
		made[part]++
		t.line(part)
	}
	if err := first.kill(); err != nil {
		return err
	}
	fmt.Fprintln(t.out, "the worker is killed with SIGKILL; another one starts")
	second, err := t.start(ctx)
	if err != nil {
		return err
	}
	defer second.kill()
	for range t.parts - t.parts/2 {
		part, err := second.next()
		if err != nil {
			return err
		}
		made[part]++
		t.line(part)
	}
	if err := t.wait(ctx, report); err != nil {
		return err
	}
	for part, times := range made {
		if times != 1 {
			return fmt.Errorf("part %s was made %d times", part, times)
		}
	}
	fmt.Fprintf(t.out, "made, and no finished part twice\n")
	return nil
}

// child is a worker process.
type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func (t *teller) start(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-worker", t.e.Addr(), "-database", t.worker.database,
		"-lease", t.lease.String(), "-part", t.part.String(), "-parts", fmt.Sprint(t.parts))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd, bufio.NewReader(out)}, cmd.Start()
}

// next waits until the worker has made a part.
func (c *child) next() (part string, err error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the worker ended: %w", err)
	}
	part, ok := strings.CutPrefix(strings.TrimSpace(line), "made part ")
	if !ok {
		return "", fmt.Errorf("the worker said %q", line)
	}
	return part, nil
}

func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = c.cmd.Wait() // it was killed, and says so
	return nil
}
