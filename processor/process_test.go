package processor_test

import (
	"bufio"
	"context"
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
