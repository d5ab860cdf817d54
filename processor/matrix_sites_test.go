package processor_test

import (
	"slices"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"google.golang.org/grpc/codes"
)

// handlerKind is a kind of handler.
type handlerKind string

const (
	kindTx    handlerKind = "tx"
	kindBatch handlerKind = "batch"
	kindCall  handlerKind = "call"
)

var handlerKinds = []handlerKind{kindTx, kindBatch, kindCall}

// site is an RPC that a processor makes: a row of the matrix.
type site struct {
	name string
	// where chooses the RPC. Its action, and which of the RPCs, are the cell's.
	where fault.Rule
	// nth is which of the matching RPCs is the first one meant; 0 means 1.
	nth int
	// more is how many of them follow for certain, so that a seed may choose among them.
	more  int
	rows  int // how many messages there must be, if more than two
	scene scene
}

// scene is what has to happen for the RPC to be made.
type scene struct {
	single bool         // there is one message
	old    bool         // the messages may have been delivered before, as far as can be seen: attempts are counted
	stale  bool         // there are records of earlier messages with the same keys, for a later time
	fails  bool         // the first attempt at the first message fails
	dies   bool         // every attempt at the first message fails, and one is all it has
	sends  bool         // the handler sends the first message's key again, once, as a schedule does; that one has its effect too
	waits  bool         // the handler goes on until the fault has been applied
	defers bool         // a Call defers its message
	leads  []fault.Rule // further faults, which lead to the RPC
}

// The tags of the processor's transactions.
const (
	tagWork     = "queue=Q"
	tagAttempts = "attempts=Q"
	tagDefer    = "defer=Q"
)

// ofTable chooses reads of a table, in a transaction with a tag or, where there is none, outside of any.
func ofTable(table, tag string) fault.Rule {
	return fault.Rule{Method: "StreamingRead", Tag: tag, Match: func(c fault.Call) bool {
		return readsTable(c, table) && (tag != "" || c.Tag == "")
	}}
}

func readsTable(c fault.Call, table string) bool {
	r, ok := c.Request.(*spannerpb.ReadRequest)
	return ok && r.GetTable() == table
}

func ofSQL(sql string) fault.Rule { return fault.Rule{Method: "ExecuteStreamingSql", SQL: sql} }

func ofCommit(tag string) fault.Rule { return fault.Rule{Method: "Commit", Tag: tag} }

// ackOf chooses the statement or read that acknowledges.
func ackOf(k handlerKind, tag string) fault.Rule {
	if k == kindBatch && tag == tagWork {
		return ofTable("Q", tag)
	}
	return ofDelete(tag)
}

func ofDelete(tag string) fault.Rule {
	return fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Tag: tag}
}

// ofFirstMessage narrows a rule about acknowledgements to those of the first message.
func ofFirstMessage(r fault.Rule) fault.Rule {
	r.Match = func(c fault.Call) bool {
		q, ok := c.Request.(*spannerpb.ExecuteSqlRequest)
		return ok && q.GetParams().GetFields()["k0"].GetStringValue() == firstMessage
	}
	return r
}

// ofFate chooses the commits that send a message again, or bury one.
func ofFate(table string) fault.Rule {
	r := ofCommit(tagWork)
	r.Match = func(c fault.Call) bool {
		q, ok := c.Request.(*spannerpb.CommitRequest)
		return ok && slices.ContainsFunc(q.GetMutations(), func(m *spannerpb.Mutation) bool {
			return m.GetSend().GetQueue() == table || m.GetInsert().GetTable() == table
		})
	}
	return r
}

// once is a fault that leads to the RPC of a site.
func once(r fault.Rule, do fault.Action) []fault.Rule {
	r.Name, r.Nth, r.Do = "leads to it", 1, do
	return []fault.Rule{r}
}

func sitesOf(k handlerKind) []site {
	receive := ofSQL("FROM RECEIVE_Q(")
	row := receive
	row.Rows = true
	renew := ofSQL("FROM RENEWLEASE_Q(")
	rollback := fault.Rule{Method: "Rollback", Tag: tagWork}
	ack, commit := ackOf(k, tagWork), ofCommit(tagWork)
	// Google's client runs a transaction again whose first statement has failed, once.
	refused := once(ack, fault.Before(codes.Internal, "broken"))
	refused[0].Times = 2
	unasked := []fault.Rule{{ // a renewal that succeeds tells the time
		SQL: renew.SQL, Do: fault.Before(codes.FailedPrecondition, "not now"),
	}}
	blind := []fault.Rule{{ // as for a role that may not read the queue
		Match: func(c fault.Call) bool { return readsTable(c, "Q") },
		Do:    fault.Before(codes.PermissionDenied, "Role may not read Queue Q."),
	}}
	lost, probe := once(commit, fault.After(codes.Unknown, "who knows")), scene{}
	fateNth := 2 // after the acknowledgement of the attempt that failed
	if k == kindBatch {
		// A batch finds out by its own acknowledgements; the fate of one of its messages asks.
		lost, probe.fails = once(ofFate("Q"), fault.After(codes.Unknown, "who knows")), true
		fateNth = 1
	}
	probe.leads = lost

	sites := []site{
		{name: "ledger check", more: 1, where: fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
			return c.Tag == "" && (readsTable(c, "QAttempts") || readsTable(c, "QDeadLetters"))
		}}},
		{name: "receive: open", where: receive},
		{name: "receive: first row", where: row},
		{name: "receive: mid-stream", where: row, nth: 2, more: 1, rows: 4},
		{name: "renew", where: renew, scene: scene{waits: true}},
		{name: "ack", where: ack},
		{name: "begin", where: fault.Rule{Method: "BeginTransaction"}, scene: scene{leads: once(ack, fault.Abort())}},
		{name: "handler's read", where: ofTable("Effects", tagWork), more: 1},
		{name: "commit", where: commit},
		{name: "commit that sends", where: commit, scene: scene{sends: true}},
		{name: "rollback", where: rollback, scene: scene{fails: true}},
		{name: "probe", where: ofTable("Q", ""), scene: probe},
		{name: "server time", where: fault.Rule{Method: "ExecuteStreamingSql", Match: func(c fault.Call) bool {
			return c.SQL == "SELECT CURRENT_TIMESTAMP()"
		}}, scene: scene{fails: true, leads: unasked}},
		{name: "ledger: read", where: ofTable("QAttempts", tagAttempts), scene: scene{old: true}},
		{name: "ledger: queue", where: ofTable("Q", tagAttempts), scene: scene{old: true, stale: true}},
		{name: "ledger: commit", where: ofCommit(tagAttempts), scene: scene{old: true}},
		{name: "take back: read", where: ofTable("QAttempts", tagAttempts), nth: 2, scene: scene{single: true, old: true, leads: refused}},
		{name: "take back: commit", where: ofCommit(tagAttempts), nth: 2, scene: scene{single: true, old: true, leads: refused}},
		{name: "fate: ack", where: ofFirstMessage(ofDelete(tagWork)), nth: fateNth, scene: scene{fails: true}},
		{name: "fate: commit", where: ofFate("Q"), scene: scene{fails: true}},
		{name: "dead letter: commit", where: ofFate("QDeadLetters"), scene: scene{dies: true}},
		{name: "no SELECT: ack", where: fault.Rule{Method: "ExecuteStreamingSql", SQL: "DELETE", Tag: tagWork}, scene: scene{leads: blind}},
		{name: "no SELECT: commit", where: commit, scene: scene{leads: blind}},
		{name: "defer: ack", where: ofDelete(tagDefer), scene: scene{defers: true}},
		{name: "defer: commit", where: ofCommit(tagDefer), scene: scene{defers: true}},
	}
	return slices.DeleteFunc(sites, func(s site) bool { return !makes(k, s.name) })
}

// makes says whether the handlers of a kind make an RPC.
func makes(k handlerKind, name string) bool {
	switch name {
	case "ledger: queue":
		return k == kindTx // it is before any handler, and the others' would be the same
	case "no SELECT: ack":
		return k == kindBatch // the others acknowledge by the same statement
	case "server time":
		return k != kindCall // a call has renewed its lease, and knows the time from that
	case "defer: ack", "defer: commit":
		return k == kindCall
	}
	return true
}
