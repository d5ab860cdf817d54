package front

import (
	"context"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
)

const (
	maxDeleted = 100_000 // session names remembered as deleted
	maxListed  = 10_000  // sessions that ListSessions can show
	pageSize   = 1000
)

// sessions is what the front remembers of names it has given out: those that were deleted, which it must refuse, and
// those that can be listed. Both are bounded; the oldest are forgotten. The zero value is ready.
type sessions struct {
	mu      sync.Mutex
	deleted names
	listed  names
}

// names is a set of strings that drops the oldest.
type names struct {
	in    map[string]struct{}
	order []string // may name some that are gone
}

func (n *names) add(name string, most int) {
	if n.in == nil {
		n.in = make(map[string]struct{})
	}
	if _, ok := n.in[name]; ok {
		return
	}
	n.in[name] = struct{}{}
	n.order = append(n.order, name)
	for len(n.in) > most || len(n.order) > 2*most {
		delete(n.in, n.order[0])
		n.order = n.order[1:]
	}
}

// add remembers a session for lists. Multiplexed ones are not listed: the service does not, and nobody deletes them.
func (s *sessions) add(name string, multiplexed bool) {
	if multiplexed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed.add(name, maxListed)
}

func (s *sessions) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listed.in, name)
	s.deleted.add(name, maxDeleted)
}

func (s *sessions) isDeleted(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.deleted.in[name]
	return ok
}

// forget drops the sessions of a database that is gone.
func (s *sessions) forget(database string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.listed.in {
		if ident.DatabaseOf(name) == database {
			delete(s.listed.in, name)
		}
	}
}

// of are the listed sessions of a database, sorted by name, from the given name on.
func (s *sessions) of(database, from string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for name := range s.listed.in {
		if name >= from && ident.DatabaseOf(name) == database {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// listSessions shows the sessions that this front has made, as far as it remembers them.
func (s *Server) listSessions(ctx context.Context, req *spannerpb.ListSessionsRequest) (*spannerpb.ListSessionsResponse, error) {
	if err := s.alive(ctx, req.GetDatabase()); err != nil {
		return nil, err
	}
	most := int(req.GetPageSize())
	if most <= 0 || most > pageSize {
		most = pageSize
	}
	resp := new(spannerpb.ListSessionsResponse)
	for _, name := range s.known.of(req.GetDatabase(), req.GetPageToken()) {
		sess, err := ident.ParseSession(name)
		if err != nil || !filterMatches(req.GetFilter(), sess.Props.GetLabels()) {
			continue
		}
		if len(resp.Sessions) == most {
			resp.NextPageToken = name
			break
		}
		resp.Sessions = append(resp.Sessions, sess.Props)
	}
	return resp, nil
}

// filterMatches knows the filters of the service's documentation: "labels.env:*" and "labels.env:dev", joined by
// spaces. The emulator knows none and shows everything; so does this for what it does not know.
func filterMatches(filter string, labels map[string]string) bool {
	for _, term := range strings.Fields(filter) {
		label, ok := strings.CutPrefix(term, "labels.")
		if !ok {
			continue
		}
		key, want, ok := strings.Cut(label, ":")
		if !ok {
			continue
		}
		have, exists := labels[key]
		if !exists || want != "*" && !strings.Contains(have, want) {
			return false
		}
	}
	return true
}
