package processor_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

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
			const limit, tries = leaseLength + 2*time.Second, 3
			took := recoverAfterAKill(t, mode)
			for try := 1; try < tries && took > limit; try++ { // a machine that is busy may be late by itself
				took = recoverAfterAKill(t, mode)
			}
			require.LessOrEqual(t, took, limit)
		})
	}
}

// recoverAfterAKill returns how long it takes until another worker has done what a killed one had begun.
func recoverAfterAKill(t *testing.T, mode string) time.Duration {
	t.Helper()
	w := newWorld(t)
	w.send("m1")
	victim := w.child(mode)
	require.Equal(t, "m1", victim.expect("start"))
	other := w.work(addOne)
	victim.signal(syscall.SIGKILL)
	killed := time.Now()
	require.Error(t, victim.end())
	other.outcome(processor.Done, 1)
	took := time.Since(killed)
	require.NoError(t, other.stop())
	w.once("m1")
	return took
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
