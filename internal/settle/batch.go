package settle

import (
	"context"
	"errors"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// Batch is a guarded transaction of several deliveries: one commit acknowledges those that are held. Its fields are as Tx
// has them.
type Batch struct {
	Queue      backend.Queue
	Deliveries []backend.Delivery
	Tag        string
	// Body does what is to happen together with the acknowledgements of the deliveries that are held, given by their
	// indexes. It may be called several times, with fewer and fewer; each time what it wrote before is undone.
	Body func(ctx context.Context, tx backend.Tx, held []int) error

	MaxRuns                                            int
	RunTime, AckTimeout, CommitTimeout, ResolveTimeout time.Duration
}

// BatchVerdict says what became of each delivery, and what it took.
type BatchVerdict struct {
	// Results has a Result for each delivery. Those that were held in the last run share one.
	Results []Result
	// Err says why the held ones were not committed, as in Verdict.
	Err                   error
	Runs, Aborts, Unknown int
}

var errNothingHeld = errors.New("spanqueue: none of the deliveries is held")

// batchRun is what the runs of a Batch have found so far.
type batchRun struct {
	try
	held []int  // of the last run that was told; all of them before that
	sent []bool // by delivery: a commit that acknowledges it has been sent by an earlier run
}

// Run runs the transaction, and again while that is safe and needed, as Tx.Run does. It needs no probe: the reading that
// acknowledges says what is held, and after a commit that landed that is nothing.
func (x *Batch) Run(ctx context.Context) BatchVerdict {
	v := BatchVerdict{Results: make([]Result, len(x.Deliveries))}
	r := batchRun{held: complement(nil, len(x.Deliveries)), sent: make([]bool, len(x.Deliveries))}
	var giveUp time.Time
	var pauses Pauses
	for {
		r.try = try{}
		x.once(ctx, &r)
		v.Runs += r.runs
		v.Aborts += r.aborts(false) // a read that finds nothing does not fail
		result, known := r.result(v.Unknown > 0)
		if r.try.sent && r.err != nil && !MayHaveLanded(r.err) {
			result, known = Refused, true
		}
		if known {
			v.Err = r.err
			if result == BodyFailed {
				v.Err = r.bodyErr
			}
			return x.verdict(v, &r, result)
		}
		if r.try.sent {
			v.Unknown++
			r.markSent()
		}
		if giveUp.IsZero() {
			giveUp = time.Now().Add(x.ResolveTimeout)
		}
		if !pauses.Wait(ctx, r.err, giveUp) {
			v.Err = r.err
			return x.verdict(v, &r, Unresolved)
		}
	}
}

// verdict gives each delivery its result: that of the last run to those that were held in it.
func (x *Batch) verdict(v BatchVerdict, r *batchRun, held Result) BatchVerdict {
	for i := range v.Results {
		v.Results[i] = NotHeld
		if r.sent[i] {
			v.Results[i] = Settled
		}
	}
	if held != NotHeld && held != Settled {
		for _, i := range r.held {
			v.Results[i] = held
		}
	}
	return v
}

func (r *batchRun) markSent() {
	for _, i := range r.held {
		r.sent[i] = true
	}
}

func (x *Batch) once(ctx context.Context, r *batchRun) {
	r.err = runTx(ctx, x.Queue, x.Tag, bounds{x.MaxRuns, x.RunTime, x.CommitTimeout}, &r.try, func(ctx context.Context, tx backend.Tx) error {
		if r.sentBefore {
			r.markSent() // the client runs the function again after a commit of which it does not know whether it landed
		}
		acking, cancel := acknowledging(ctx, x.AckTimeout)
		defer cancel()
		missing, err := tx.AckAll(acking, x.Deliveries)
		if err != nil {
			return why(acking, err)
		}
		r.held = complement(missing, len(x.Deliveries))
		if len(r.held) == 0 {
			r.missed = true
			return errNothingHeld
		}
		return bodyError(x.Body(ctx, tx, r.held))
	})
}

// complement returns the indexes up to n that are not among the missing.
func complement(missing []int, n int) []int {
	gone := make(map[int]bool, len(missing))
	for _, i := range missing {
		gone[i] = true
	}
	held := make([]int, 0, n-len(missing))
	for i := range n {
		if !gone[i] {
			held = append(held, i)
		}
	}
	return held
}
