package processor_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// witness keeps one of each kind of RPC that the fronts of the matrix have seen, so that the matrix can show that no RPC of
// the processor is without a row.
type witness struct {
	mu   sync.Mutex
	seen map[string]fault.Call
}

// rule is one that looks on and never applies.
func (w *witness) rule() fault.Rule {
	return fault.Rule{Name: "witness", Do: fault.Delay(0), Match: func(c fault.Call) bool {
		kind := rpcKind(c)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.seen == nil {
			w.seen = make(map[string]fault.Call)
		}
		if _, known := w.seen[kind]; !known {
			w.seen[kind] = c
		}
		return false
	}}
}

// rpcKind says what an RPC is for: its method, the kind of its transaction, and what it reads or writes.
func rpcKind(c fault.Call) string {
	tag, _, _ := strings.Cut(c.Tag, "=")
	what, _, _ := strings.Cut(c.SQL, "(")
	switch r := c.Request.(type) {
	case *spannerpb.ReadRequest:
		what = r.GetTable()
	case *spannerpb.CommitRequest:
		var kinds []string
		for _, m := range r.GetMutations() {
			kinds = append(kinds, strings.TrimSuffix(fmt.Sprintf("%T", m.GetOperation()), "_"))
		}
		slices.Sort(kinds)
		what = strings.Join(slices.Compact(kinds), " ")
	}
	return strings.Join([]string{c.Method, tag, what}, "|")
}

// notOfTheProcessor says whether a cell makes an RPC itself, before its processor runs or after: it has a database and a
// session made, and sends messages. Of Rollbacks those of the handlers' transactions have a row: Google's client sends the
// others in the same way, on a context of its own.
func notOfTheProcessor(c fault.Call) bool {
	switch c.Method {
	case "CreateInstance", "CreateDatabase", "DropDatabase", "CreateSession", "DeleteSession":
		return true
	case "Rollback":
		return !slices.Contains(strings.Split(c.Tag, ","), tagWork)
	case "Commit":
		return c.Tag == tagCell || strings.HasPrefix(c.Tag, "send=")
	}
	return false
}

// unmet returns the kinds of RPC that no row of the matrix is about.
func (w *witness) unmet() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unmet []string
	for kind, c := range w.seen {
		met := notOfTheProcessor(c) || slices.ContainsFunc(handlerKinds, func(k handlerKind) bool {
			return slices.ContainsFunc(sitesOf(k), func(s site) bool { return isAbout(s.where, c) })
		})
		if !met {
			unmet = append(unmet, kind)
		}
	}
	slices.Sort(unmet)
	return unmet
}

// isAbout says whether a row's rule chooses an RPC.
func isAbout(r fault.Rule, c fault.Call) bool {
	return !r.Rows && (r.Method == "" || r.Method == c.Method) && strings.Contains(c.SQL, r.SQL) &&
		(r.Tag == "" || slices.Contains(strings.Split(c.Tag, ","), r.Tag)) && (r.Match == nil || r.Match(c))
}
