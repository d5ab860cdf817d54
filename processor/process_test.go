package processor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// The tests of this file have workers in processes of their own: the test binary, run again, with what it is to do in its
// environment. A child speaks in lines: "start <id>" when a handler starts, "outcome <name>" when a delivery has ended.

const (
	childMode     = "SPANQUEUE_TEST_CHILD"
	childAddr     = "SPANQUEUE_TEST_ADDR"
	childDatabase = "SPANQUEUE_TEST_CHILD_DATABASE"
)

// What a child's handler does before its effect.
const (
	modeTx   = "tx"   // wait for a line of input, inside the transaction
	modeCall = "call" // wait for a line of input, in a Call
	modeKill = "kill" // kill the process, for messages whose id begins with "poison"
)

func child() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := spanner.NewClientWithConfig(ctx, os.Getenv(childDatabase), spanner.ClientConfig{DisableNativeMetrics: true},
		emulator.ClientOptions(os.Getenv(childAddr))...)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer client.Close()
	q, err := queue.New(client, testQueue, queue.LeaseLength(leaseLength))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	input := bufio.NewReader(os.Stdin)
	before := func(m *queue.Message) {
		fmt.Println("start", m.Key[0])
		if os.Getenv(childMode) != modeKill {
			_, _ = input.ReadString('\n')
		} else if strings.HasPrefix(m.Key[0].(string), "poison") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	var h processor.Handler = processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		before(m)
		return addOne(ctx, tx, m)
	})
	if os.Getenv(childMode) == modeCall {
		h = processor.Call[struct{}]{
			Call: func(_ context.Context, h *lease.Held) (struct{}, error) {
				before(h.Message())
				return struct{}{}, nil
			},
			Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ struct{}) error {
				return addOne(ctx, tx, m)
			},
		}
	}
	p, err := processor.New(q, h, processor.Config{
		Concurrency: 1, CommitTimeout: 500 * time.Millisecond, MaxAttempts: 2,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		told := map[processor.Outcome]int64{}
		for ctx.Err() == nil {
			for o, n := range p.Figures().Deliveries {
				for ; told[o] < n; told[o]++ {
					fmt.Println("outcome", o)
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err = p.Run(ctx)
	<-ended
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// process is a child.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
	ended chan error
}

func (w *world) child(mode string) *process {
	w.t.Helper()
	self, err := os.Executable()
	require.NoError(w.t, err)
	p := &process{t: w.t, cmd: exec.Command(self), lines: make(chan string, 1000), ended: make(chan error, 1)}
	p.cmd.Env = append(slices.Clone(os.Environ()), childMode+"="+mode, childAddr+"="+w.db.Endpoint(), childDatabase+"="+w.db.Name)
	p.in, err = p.cmd.StdinPipe()
	require.NoError(w.t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		p.ended <- p.cmd.Wait()
	}()
	w.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		for range p.lines {
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// expect waits for a line that begins so and returns the rest of it. Other lines are passed over.
func (p *process) expect(prefix string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the child ended before it said %q", prefix)
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			p.t.Fatalf("the child did not say %q", prefix)
		}
	}
}

// end waits until the process has ended.
func (p *process) end() error {
	p.t.Helper()
	for range p.lines {
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		p.t.Fatal("the child did not end")
		return nil
	}
}

// A process that is frozen for three leases with a message in its handler commits nothing when it goes on, whatever
// another worker has done with the message meanwhile, and says so.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	later := func(ctx context.Context, h *lease.Held) error { return h.Defer(ctx, patience) }
	checkpoint := func(ctx context.Context, h *lease.Held) error { return h.Checkpoint(ctx, []byte("further"), patience) }
	for name, c := range map[string]struct {
		mode    string
		other   processor.Handler
		effects int64
	}{
		"finished, tx":   {modeTx, processor.Tx(addOne), 1},
		"finished, call": {modeCall, processor.Tx(addOne), 1},
		"sent again for later": {modeCall, processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
			return processor.Snooze(time.Hour)
		}), 0},
		"deferred and finished":     {modeCall, call(later), 1},
		"checkpointed and finished": {modeCall, call(checkpoint), 1},
		"failed and sent again later": {modeCall, processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
			return processor.Retry(errors.New("no"), time.Hour)
		}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.send("m1")
			frozen := w.child(c.mode)
			require.Equal(t, "m1", frozen.expect("start"))
			frozen.signal(syscall.SIGSTOP)
			stopped := time.Now()
			other := w.handle(w.queue, c.other, func(c *processor.Config) { c.HandlerTimeout = patience })
			wait(t, "the other worker to take the message", func() bool {
				f := other.Figures().Deliveries
				return f[processor.Done]+f[processor.Snoozed]+f[processor.Retried] > 0
			})
			wait(t, "three leases", func() bool { return time.Since(stopped) > 3*leaseLength })
			frozen.signal(syscall.SIGCONT)
			_, err := fmt.Fprintln(frozen.in)
			require.NoError(t, err)
			said := frozen.expect("outcome")
			require.Contains(t, []string{"duplicate", "lease lost", "settled elsewhere", "interrupted"}, said)
			require.Equal(t, c.effects, w.effects("m1"))
			frozen.signal(syscall.SIGINT)
			require.NoError(t, frozen.end())
			require.NoError(t, other.stop())
			require.Equal(t, c.effects, w.effects("m1"))
			require.Equal(t, int(1-c.effects), w.left("m1"))
		})
	}
}

// After a kill -9 with a message in the handler it is handled elsewhere within one lease plus 2 s, and nothing of the
// killed transaction stays.
func TestRecoveryAfterAKill(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modeTx, modeCall} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.send("m1")
			victim := w.child(mode)
			require.Equal(t, "m1", victim.expect("start"))
			var seen attemptsSeen
			other := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				seen.add(m)
				return addOne(ctx, tx, m)
			})
			victim.signal(syscall.SIGKILL)
			killed := time.Now()
			require.Error(t, victim.end())
			other.outcome(processor.Done, 1)
			require.Less(t, time.Since(killed), leaseLength+2*time.Second)
			require.NoError(t, other.stop())
			w.once("m1")
		})
	}
}

// A message whose handler kills the process is dead-lettered after MaxAttempts + 1 starts or one more (the first one is on
// record only if the message was old by then), and the others go on.
func TestMessageThatKillsItsProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("poison", "a", "b", "c")
	starts := 0
	for w.left("poison") == 1 {
		worker := w.child(modeKill)
		for line := range worker.lines {
			if line == "start poison" {
				starts++
			}
			if line == "outcome dead-lettered" {
				worker.signal(syscall.SIGINT)
			}
		}
		require.LessOrEqual(t, starts, 4)
	}
	const maxAttempts = 2
	require.GreaterOrEqual(t, starts, maxAttempts+1)
	require.LessOrEqual(t, starts, maxAttempts+2)
	letters := w.letters("poison")
	require.Len(t, letters, 1)
	require.Equal(t, "no outcome", letters[0].Reason)
	require.Zero(t, w.effects("poison"))
	last := w.work(addOne)
	wait(t, "the others", func() bool { return w.left("a")+w.left("b")+w.left("c") == 0 })
	require.NoError(t, last.stop())
	w.once("a", "b", "c")
}
