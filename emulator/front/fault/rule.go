package fault

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
)

// Call is what a rule sees of an RPC, or of one row message of an open stream.
type Call struct {
	// Method is the bare name, for instance "Commit" or "ExecuteStreamingSql".
	Method string
	// Database is the full name, "projects/P/instances/I/databases/D". It is empty where the request names none.
	Database string
	// SQL is the statement; the statements of a batch are joined by ";\n". Empty for RPCs without any.
	SQL string
	// Tag is the transaction tag, also where only earlier requests of the transaction carried it (Rollback).
	Tag string
	// Request is the request as the client sent it; nil when its type is not linked into this program. It must not be
	// changed.
	Request proto.Message
	// Row is the message about to be sent, for rules with Rows set; nil otherwise. It must not be changed.
	Row *spannerpb.PartialResultSet
}

// Rule says which calls are touched and how. All conditions must hold; an empty one holds always.
type Rule struct {
	// Name stands in the records, and tells the decisions of one rule from those of another with the same seed.
	// Empty: the action's name.
	Name string
	// Method is the bare name of the RPC ("Commit"), without its service.
	Method string
	// Database is the full name of the database.
	Database string
	// SQL must occur in the statement's text, as written.
	SQL string
	// Tag must be the transaction tag or one of its comma-separated parts.
	Tag string
	// Match is asked last, if set. It runs while the rule is locked: it must be quick and must not use the Set.
	Match func(Call) bool

	// Rows makes the rule about the row messages of the streams that the conditions above choose, not about the RPCs:
	// Nth and Times count messages with values in them, and the action is applied to a message instead of the RPC.
	Rows bool

	// Nth is the first matching call to which the action may be applied, from 1. Zero means 1.
	Nth int
	// Times is how often the action is applied at most. Zero means once when Nth is set, and without end otherwise.
	Times int
	// Probability is the chance of each matching call, above 0 and at most 1. Zero means always.
	Probability float64
	// Seed feeds the decisions of a rule with a Probability. Zero is a seed like any other.
	Seed uint64

	// Do is what happens. It must be set.
	Do Action
}

// check says what is wrong with the rule, or "".
func (r Rule) check() string {
	switch {
	case r.Do.kind == none:
		return "Do is not set"
	case strings.ContainsAny(r.Method, "/."):
		return fmt.Sprintf("Method is %q, want the bare name, such as \"Commit\"", r.Method)
	case r.Do.d < 0:
		return fmt.Sprintf("Do is %q, want a time of 0 or more", r.Do)
	case r.Do.kind == away && r.Do.d == 0:
		return "Do is Away for no time at all"
	case r.Nth < 0:
		return fmt.Sprintf("Nth is %d, want 0 or more", r.Nth)
	case r.Times < 0:
		return fmt.Sprintf("Times is %d, want 0 or more", r.Times)
	case !(r.Probability >= 0 && r.Probability <= 1):
		return fmt.Sprintf("Probability is %v, want 0 to 1", r.Probability)
	case r.Do.kind == forget && r.Rows:
		return "Forget is about commits and cannot be applied to rows"
	case r.Do.kind == forget && r.Method != "Commit":
		return fmt.Sprintf("Forget needs Method \"Commit\", have %q", r.Method)
	}
	return ""
}

func (r Rule) withDefaults() Rule {
	if r.Name == "" {
		r.Name = r.Do.String()
	}
	if r.Times == 0 && r.Nth > 0 {
		r.Times = 1
	}
	if r.Nth == 0 {
		r.Nth = 1
	}
	return r
}

// matches tells whether the rule is about the call.
func (r Rule) matches(c Call) bool {
	return r.Rows == (c.Row != nil) &&
		(r.Method == "" || r.Method == c.Method) &&
		(r.Database == "" || r.Database == c.Database) &&
		(r.SQL == "" || strings.Contains(c.SQL, r.SQL)) &&
		(r.Tag == "" || hasTag(c.Tag, r.Tag)) &&
		(r.Match == nil || r.Match(c))
}

// hasTag tells whether want is the tag or a comma-separated part of it. A mere substring would take "queue=Q2" for
// "queue=Q".
func hasTag(tag, want string) bool {
	if tag == want {
		return true
	}
	for part := range strings.SplitSeq(tag, ",") {
		if strings.TrimSpace(part) == want {
			return true
		}
	}
	return false
}
