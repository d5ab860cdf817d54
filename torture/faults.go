package main

import (
	"slices"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// faults is what the database does to its clients, by chance, besides what happens to the machines.
type faults struct {
	aborts  []*fault.Handle // transactions aborted
	answers []*fault.Handle // answers lost, or wrong, whether what they are about has happened or not
	cuts    []*fault.Handle // connections and streams cut
	all     map[string]*fault.Handle
}

const resetText = "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"

// inject makes the database misbehave. Each share is that of the calls that meet the fault.
func inject(set *fault.Set, on setting, seed uint64) *faults {
	f := &faults{all: make(map[string]*fault.Handle)}
	add := func(kind *[]*fault.Handle, name string, share float64, do fault.Action, r fault.Rule) {
		r.Name, r.Probability, r.Seed, r.Do = name, share, seed, do
		h := set.Add(r)
		*kind = append(*kind, h)
		f.all[name] = h
	}
	lost := fault.After(codes.DeadlineExceeded, "the answer was lost")
	commit := fault.Rule{Method: "Commit", Match: ofWork}
	add(&f.aborts, "commit aborted", 0.03, fault.Abort(), commit)
	add(&f.answers, "commit's answer lost", 0.015, lost, commit)
	add(&f.answers, "commit's stream reset", 0.015, fault.After(codes.Internal, resetText), commit)
	add(&f.answers, "commit not saved", 0.015, fault.Before(codes.DeadlineExceeded, "the answer was lost"), commit)
	add(&f.answers, "commit not answered", 0.005, fault.Drop(), commit)
	add(&f.answers, "server restarted after commit", 0.005, fault.Forget(), commit)
	add(&f.answers, "commit late", 0.005, fault.DelayReply(commitTimeout*2), commit)
	add(&f.cuts, "cut before commit", 0.004, fault.Cut(), commit)
	add(&f.cuts, "cut after commit", 0.004, fault.CutReply(), commit)

	ack := fault.Rule{Match: ofAck}
	add(&f.aborts, "acknowledgement aborted", 0.02, fault.Abort(), ack)
	add(&f.answers, "acknowledgement's answer lost", 0.01, fault.After(codes.Unavailable, "try again"), ack)
	add(&f.answers, "acknowledgement refused", 0.01, fault.Before(codes.Internal, "something broke"), ack)

	probe := fault.Rule{Method: "StreamingRead", Match: ofProbe}
	add(&f.answers, "probe not answered", 0.1, fault.Before(codes.Internal, "something broke"), probe)

	send := fault.Rule{Method: "Commit", Tag: producerTag}
	add(&f.answers, "send's answer lost", 0.05, lost, send)
	add(&f.answers, "send's stream reset", 0.04, fault.After(codes.Internal, resetText), send)
	add(&f.answers, "send not saved", 0.03, fault.Before(codes.DeadlineExceeded, "the answer was lost"), send)

	if on.table() {
		f.injectTables(add)
	} else {
		f.injectQueues(add)
	}
	return f
}

// adding adds a fault to those of its kind.
type adding = func(kind *[]*fault.Handle, name string, share float64, do fault.Action, r fault.Rule)

// injectQueues adds what can happen to receive streams, renewals and the counting of attempts.
func (f *faults) injectQueues(add adding) {
	counts := fault.Rule{Method: "Commit", Match: tagged("attempts=")}
	add(&f.answers, "count's answer lost", 0.03, fault.After(codes.Unknown, "who knows"), counts)

	renewal := fault.Rule{SQL: "FROM RENEWLEASE_"}
	add(&f.answers, "renewal's answer lost", 0.02, fault.After(codes.Unavailable, "try again"), renewal)
	add(&f.answers, "renewal refused", 0.02, fault.Before(codes.FailedPrecondition, "not now"), renewal)
	add(&f.answers, "renewal late", 0.02, fault.DelayReply(leaseLength/4), renewal)

	rows := fault.Rule{SQL: "FROM RECEIVE_", Rows: true}
	add(&f.cuts, "stream broken", 0.003, fault.Before(codes.Unavailable, "try again"), rows)
	add(&f.cuts, "stream reset", 0.003, fault.After(codes.Internal, resetText), rows)
	add(&f.answers, "row late", 0.01, fault.Delay(leaseLength/4), rows)
}

// injectTables adds what can happen to the claims, looks and renewals of queue tables.
func (f *faults) injectTables(add adding) {
	claim := fault.Rule{Method: "Commit", Match: tagged("claim=")}
	add(&f.aborts, "claim aborted", 0.03, fault.Abort(), claim)
	add(&f.answers, "claim's answer lost", 0.02, fault.After(codes.DeadlineExceeded, "the answer was lost"), claim)
	add(&f.answers, "claim's stream reset", 0.02, fault.After(codes.Internal, resetText), claim)
	add(&f.answers, "claim not saved", 0.02, fault.Before(codes.DeadlineExceeded, "the answer was lost"), claim)
	add(&f.answers, "claim not answered", 0.01, fault.Drop(), claim)
	add(&f.cuts, "cut after claim", 0.01, fault.CutReply(), claim)

	look := fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool { return looks(c.Request) }}
	add(&f.answers, "look refused", 0.01, fault.Before(codes.Internal, "something broke"), look)
	add(&f.answers, "look late", 0.01, fault.DelayReply(leaseLength/4), look)

	renewal := fault.Rule{Method: "Commit", Match: tagged("renew=")}
	add(&f.aborts, "renewal aborted", 0.03, fault.Abort(), renewal)
	add(&f.answers, "renewal's answer lost", 0.03, fault.After(codes.DeadlineExceeded, "the answer was lost"), renewal)
	add(&f.answers, "renewal not saved", 0.03, fault.Before(codes.Internal, "something broke"), renewal)
	add(&f.answers, "renewal late", 0.03, fault.DelayReply(leaseLength/4), renewal)
}

// remove ends the faults. Their counts stay.
func (f *faults) remove() {
	for _, h := range f.all {
		h.Remove()
	}
}

func applied(hs []*fault.Handle) int {
	sum := 0
	for _, h := range hs {
		sum += h.Applied()
	}
	return sum
}

// missing names the faults that were never applied.
func (f *faults) missing() []string {
	var names []string
	for name, h := range f.all {
		if h.Applied() == 0 {
			names = append(names, name)
		}
	}
	return names
}

// tagged makes the test for calls of transactions whose tags begin so.
func tagged(prefix string) func(fault.Call) bool {
	return func(c fault.Call) bool { return strings.HasPrefix(c.Tag, prefix) }
}

// ofWork says whether the call is part of a transaction that acknowledges messages.
func ofWork(c fault.Call) bool { return isWork(c.Tag) }

// ofAck says whether the call acknowledges: by statement, or by reading what is to be deleted.
func ofAck(c fault.Call) bool {
	if !ofWork(c) {
		return false
	}
	if read, ok := c.Request.(*spannerpb.ReadRequest); ok {
		return slices.Contains(queueNames, read.GetTable())
	}
	return c.Method == "ExecuteSql" && strings.HasPrefix(c.SQL, "DELETE")
}

// ofProbe says whether the call asks what has become of a message.
func ofProbe(c fault.Call) bool { return c.Tag == "" && !looks(c.Request) }
