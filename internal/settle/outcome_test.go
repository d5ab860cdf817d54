package settle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// scripted is a queue whose transactions go as the test says. It has the methods that this package uses.
type scripted struct {
	backend.Queue
	runTx func(ctx context.Context, f func(context.Context, backend.Tx) error) error
	probe func() (backend.Presence, error)
}

func (s *scripted) RunTx(ctx context.Context, _ backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	return s.runTx(ctx, f)
}

func (s *scripted) Probe(context.Context, backend.Delivery) (backend.Presence, error) {
	return s.probe()
}

// scriptedTx is a run of one of its transactions.
type scriptedTx struct {
	backend.Tx
	ack     error
	missing []int
}

func (scriptedTx) Spanner() *spanner.ReadWriteTransaction { return nil }

func (t scriptedTx) Ack(context.Context, backend.Delivery) error { return t.ack }

func (t scriptedTx) AckAll(context.Context, []backend.Delivery) ([]int, error) {
	return t.missing, t.ack
}

var errUnavailable = status.Error(codes.Unavailable, "the network is gone")

// The client runs the function again after some commits of which it does not know whether they landed. When the database
// then no longer answers, it is not true that nothing was kept.
func TestUnansweredRunAfterASentCommitIsLookedUp(t *testing.T) {
	t.Parallel()
	q := &scripted{
		runTx: func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
			if err := f(ctx, scriptedTx{}); err != nil { // its commit lands, and the answer is lost
				return err
			}
			return f(ctx, scriptedTx{ack: errUnavailable})
		},
		probe: func() (backend.Presence, error) { return backend.Moved, nil },
	}
	x := Tx{
		Queue: q, Body: func(context.Context, backend.Tx) error { return nil },
		MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: time.Second,
	}
	v := x.Run(t.Context())
	require.Equal(t, Settled, v.Result, "%v", v.Err)
}

// A batch whose acknowledgement is not answered has not found anything missing.
func TestBatchWithoutAnAnswerMissesNothing(t *testing.T) {
	t.Parallel()
	q := &scripted{runTx: func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
		return f(ctx, scriptedTx{ack: errUnavailable})
	}}
	x := Batch{
		Queue: q, Deliveries: make([]backend.Delivery, 2), Body: func(context.Context, backend.Tx, []int) error { return nil },
		MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: time.Second,
	}
	v := x.Run(t.Context())
	require.Equal(t, []Result{Unreachable, Unreachable}, v.Results)
	require.ErrorIs(t, v.Err, errUnavailable)
}

// What an earlier run has found missing stays missing, whatever becomes of the others.
func TestBatchKeepsWhatItKnowsToBeMissing(t *testing.T) {
	t.Parallel()
	q := &scripted{runTx: func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
		if err := f(ctx, scriptedTx{missing: []int{0}}); !errors.Is(err, errBody) {
			return errors.New("the body's error was expected")
		}
		return f(ctx, scriptedTx{ack: errUnavailable})
	}}
	x := Batch{
		Queue: q, Deliveries: make([]backend.Delivery, 2), Body: func(context.Context, backend.Tx, []int) error { return errors.New("no") },
		MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: time.Second,
	}
	require.Equal(t, []Result{NotHeld, Unreachable}, x.Run(t.Context()).Results)
}

// A NOT_FOUND of something that a handler wrote is a refusal, whatever the table's name is.
func TestMayHaveLanded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Transaction not found: 7": true,
		"Row {Int64(1)} in table CardTransactions is missing. Row cannot be updated.":                                        false,
		"Table not found: Transactions":                                                                                      false,
		"Column not found in table CardTransactions: TransactionId":                                                          false,
		"Insert failed because key was not found in parent table:  Parent Row for row [x] in table Transactions is missing.": false,
	} {
		require.Equal(t, want, MayHaveLanded(status.Error(codes.NotFound, text)), text)
	}
	require.False(t, MayHaveLanded(status.Error(codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8")),
		"it was never sent")
	require.True(t, MayHaveLanded(status.Error(codes.Internal, "something broke")))
}

// A run that follows a commit which landed, or an acknowledgement that missed, is no abort.
func TestAbortsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		try            try
		missBeginsAnew bool
		want           int
	}{
		"one run":                      {try{runs: 1}, true, 0},
		"no run":                       {try{}, true, 0},
		"two aborts":                   {try{runs: 3}, true, 2},
		"a miss":                       {try{runs: 2, missed: true}, true, 0},
		"an abort and a miss":          {try{runs: 3, missed: true}, true, 1},
		"landed, answered as a reset":  {try{runs: 3, missed: true, sentBefore: true}, true, 0},
		"lost on its way":              {try{runs: 2, sentBefore: true}, true, 1},
		"batch: a miss":                {try{runs: 1, missed: true}, false, 0},
		"batch: an abort and a miss":   {try{runs: 2, missed: true}, false, 1},
		"batch: landed, as a reset":    {try{runs: 2, missed: true, sentBefore: true}, false, 0},
		"batch: landed after an abort": {try{runs: 3, missed: true, sentBefore: true}, false, 1},
	} {
		require.Equal(t, c.want, c.try.aborts(c.missBeginsAnew), name)
	}
}

// A body that the database aborts whenever it comes to its end is not run for as often as MaxRuns says when that takes too
// long.
func TestSlowRunsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow, runTime = 12 * time.Second, time.Minute
		q := &scripted{runTx: func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
			for {
				if err := f(ctx, scriptedTx{}); err != nil {
					return err
				}
				// its commit is answered with ABORTED
			}
		}}
		x := Tx{
			Queue: q, Body: func(context.Context, backend.Tx) error { time.Sleep(slow); return nil },
			MaxRuns: 100, RunTime: runTime, CommitTimeout: time.Minute, ResolveTimeout: time.Second,
		}
		begun := time.Now()
		v := x.Run(t.Context())
		require.Equal(t, AbortedTooOften, v.Result)
		require.Greater(t, time.Since(begun), runTime)
		require.LessOrEqual(t, time.Since(begun), runTime+slow)
		x.RunTime = 0
		require.Equal(t, 101, x.Run(t.Context()).Runs, "no bound")
	})
}

// What cannot be looked up is not taken for present: even a commit that was refused may have followed one that landed.
func TestUnansweredProbeIsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusal, silence := status.Error(codes.FailedPrecondition, "not now"), status.Error(codes.Internal, "broken")
		q := &scripted{
			runTx: func(ctx context.Context, f func(context.Context, backend.Tx) error) error {
				if err := f(ctx, scriptedTx{}); err != nil {
					return err
				}
				return refusal
			},
			probe: func() (backend.Presence, error) { return backend.Present, silence },
		}
		x := Tx{
			Queue: q, Body: func(context.Context, backend.Tx) error { return nil },
			MaxRuns: 10, CommitTimeout: time.Minute, ResolveTimeout: time.Minute,
		}
		v := x.Run(t.Context())
		require.Equal(t, Unresolved, v.Result)
		require.ErrorIs(t, v.Err, refusal)
		require.ErrorIs(t, v.Err, silence)
	})
}
