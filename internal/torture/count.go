package main

import (
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// rpcs counts the RPCs of the workers as they come to the front, so that no kill loses a count.
type rpcs struct {
	mu     sync.Mutex
	counts map[rpcKind]int64
}

// rpcKind is what an RPC is counted as.
type rpcKind string

const (
	rpcReceive rpcKind = "receive"
	rpcRenew   rpcKind = "renew"
	rpcSession rpcKind = "sessions"
	rpcClock   rpcKind = "clock"
	rpcCommit  rpcKind = "commit"
	rpcWork    rpcKind = "other"
	rpcNone    rpcKind = "" // not a worker's
)

// kindOf says what an RPC counts as. The producers' transactions are known by their tag; their client begins them
// explicitly, and nobody else sends an Apply.
func kindOf(c fault.Call) rpcKind {
	switch {
	case c.Tag == producerTag:
		return rpcNone
	case strings.HasSuffix(c.Method, "Session") || strings.HasSuffix(c.Method, "Sessions"):
		return rpcSession
	case strings.Contains(c.SQL, "FROM RECEIVE_"):
		return rpcReceive
	case strings.Contains(c.SQL, "FROM RENEWLEASE_"):
		return rpcRenew
	case c.SQL == "SELECT CURRENT_TIMESTAMP()":
		return rpcClock
	case c.Method == "Commit":
		return rpcCommit
	}
	return rpcWork
}

// watch counts from now on. The rule is applied to nothing; it only looks.
func (r *rpcs) watch(set *fault.Set) *fault.Handle {
	r.counts = make(map[rpcKind]int64)
	return set.Add(fault.Rule{Name: "count", Match: func(c fault.Call) bool {
		r.mu.Lock()
		r.counts[kindOf(c)]++
		r.mu.Unlock()
		return false
	}, Do: fault.Before(codes.Internal, "the counting rule was applied")})
}

func (r *rpcs) count(kinds ...rpcKind) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := int64(0)
	for _, k := range kinds {
		sum += r.counts[k]
	}
	return sum
}
