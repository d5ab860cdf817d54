package main

import (
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/examples/payments/gateway"
)

// The shares of the calls that meet each fault.
var gatewayFaults = gateway.Faults{Before: 0.12, After: 0.08, Lost: 0.08}

const (
	mailsFailing  = 0.25
	abortedShare  = 0.05
	lostShare     = 0.03
	reRunShare    = 0.03
	notSavedShare = 0.02
)

// faults is what the database does to the service and its worker.
type faults struct {
	aborted  *fault.Handle // the database aborts the transaction, as it may at any time
	lost     *fault.Handle // the commit is saved, and its answer is lost
	reRun    *fault.Handle // the same, with an answer after which Google's client runs the function again by itself
	notSaved *fault.Handle // the commit is not saved, and looks exactly like one whose answer was lost
}

// inject makes the database misbehave, in the same way for the same seed.
func inject(db *database, seed uint64) faults {
	onCommit := func(name string, share float64, do fault.Action) *fault.Handle {
		return db.faults().Add(fault.Rule{Name: name, Method: "Commit", Database: db.name, Probability: share, Seed: seed, Do: do})
	}
	return faults{
		aborted:  onCommit("aborted", abortedShare, fault.Abort()),
		lost:     onCommit("lost", lostShare, fault.After(codes.DeadlineExceeded, "the answer was lost")),
		reRun:    onCommit("re-run", reRunShare, fault.After(codes.Internal, "stream terminated by RST_STREAM")),
		notSaved: onCommit("not saved", notSavedShare, fault.Before(codes.DeadlineExceeded, "the answer was lost")),
	}
}

func (f faults) lostAnswers() int { return f.lost.Applied() + f.reRun.Applied() + f.notSaved.Applied() }
