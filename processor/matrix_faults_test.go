package processor_test

import (
	"strings"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"google.golang.org/grpc/codes"
)

// matrixFault is a column of the matrix.
type matrixFault struct {
	name string
	do   func(time.Duration) fault.Action // given how long it lasts, if it lasts
	// commits: it can be applied to commits only.
	commits bool
}

func (f matrixFault) fits(s site) bool { return !f.commits || s.where.Method == "Commit" }

// answer is an error that an RPC is answered with.
type answer struct {
	name string
	code codes.Code
	text string
}

var answers = []answer{
	{"Unavailable", codes.Unavailable, "try again"},
	{"Internal", codes.Internal, "something broke"},
	{"RST_STREAM", codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
	{"Deadline", codes.DeadlineExceeded, "too late"},
	{"Canceled", codes.Canceled, "cancelled"},
	{"Unknown", codes.Unknown, "who knows"},
	{"Exhausted", codes.ResourceExhausted, "too much"},
	{"NotFound", codes.NotFound, "Transaction not found: 7"},
	{"Failed", codes.FailedPrecondition, "not now"},
}

// matrixFaults are the faults of package fault, each of them with every code that matters.
var matrixFaults = allFaults()

func allFaults() []matrixFault {
	var all []matrixFault
	add := func(name string, do func(time.Duration) fault.Action) {
		all = append(all, matrixFault{name: name, do: do})
	}
	fixed := func(a fault.Action) func(time.Duration) fault.Action {
		return func(time.Duration) fault.Action { return a }
	}
	add("abort", fixed(fault.Abort()))
	for _, a := range answers {
		add("before "+a.name, fixed(fault.Before(a.code, a.text)))
	}
	for _, a := range answers {
		add("after "+a.name, fixed(fault.After(a.code, a.text)))
	}
	add("after Aborted", fixed(fault.After(codes.Aborted, "Transaction was aborted.")))
	add("delay", fault.Delay)
	add("delay reply", fault.DelayReply)
	add("hold", fixed(fault.Hold()))
	add("hold reply", fixed(fault.HoldReply()))
	add("drop", fixed(fault.Drop()))
	add("cut", fixed(fault.Cut()))
	add("cut reply", fixed(fault.CutReply()))
	add("away", fault.Away)
	all = append(all, matrixFault{name: "forget", do: fixed(fault.Forget()), commits: true})
	return all
}

// blames says whether the handler may be blamed for the fault: its own statement fails for good, or is never answered, or
// its commit is refused, and nobody can tell that from a mistake of its own.
func (c *cell) blames() bool {
	switch c.site.name {
	case "commit", "commit that sends", "no SELECT: commit":
		return c.fault.name == "before Failed"
	case "defer: ack":
		return c.fault.name == "drop"
	case "handler's read":
		if c.fault.name == "drop" {
			return true
		}
		_, name, answered := strings.Cut(c.fault.name, " ")
		return answered && (name == "Internal" || name == "Deadline" || name == "Canceled" || name == "Unknown" ||
			name == "Exhausted" || name == "NotFound" || name == "Failed")
	}
	return false
}
