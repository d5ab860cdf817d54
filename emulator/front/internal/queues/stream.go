package queues

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// stream is what must be remembered of a receive query so that it can be resumed. One call serves it at a time; a call
// that resumes it takes it over from the one before, which the server may not know to be cut off.
type stream struct {
	id  string // streamIDBytes of them
	sql string
	end time.Time // when it ends, however often it is resumed

	mu    sync.Mutex
	owner *streamOwner
	seq   uint64    // the number of the row sent last
	beat  uint32    // counts the messages without a row
	sent  []sentRow // the rows whose leases may still run, by seq
	swept int       // how many were left when dead ones were last swept out
}

// streamOwner is the call that serves a stream.
type streamOwner struct {
	lost chan struct{} // closed when another call has taken over
}

// sentRow is enough to send a row again: its message is read anew.
type sentRow struct {
	seq   uint64
	id    ledger.ID
	lease ledger.Lease
	last  bool
}

const (
	streamIDBytes = 16
	tokenBytes    = streamIDBytes + 8 + 4
)

// token is unique in the stream: the client hands rows on only when a token differs from the one before.
func (s *stream) token(seq uint64, beat uint32) []byte {
	t := append(make([]byte, 0, tokenBytes), s.id...)
	t = binary.BigEndian.AppendUint64(t, seq)
	return binary.BigEndian.AppendUint32(t, beat)
}

// nextBeat is the token of a message without a row.
func (s *stream) nextBeat() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat++
	return s.token(s.seq, s.beat)
}

// append notes a row that is about to be sent, and returns its token.
func (s *stream) append(id ledger.ID, lease ledger.Lease, last bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	s.sent = append(s.sent, sentRow{seq: s.seq, id: id, lease: lease, last: last})
	return s.token(s.seq, 0)
}

// sweep forgets the rows whose leases are over, once they may be the majority.
func (s *stream) sweep(live func(token string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) < 2*s.swept+64 {
		return
	}
	s.sent = slices.DeleteFunc(s.sent, func(r sentRow) bool { return !live(r.lease.Token) })
	s.swept = len(s.sent)
}

// take makes the caller the owner and returns the rows behind seq that were sent before.
func (s *stream) take(seq uint64) (*streamOwner, []sentRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != nil {
		close(s.owner.lost)
	}
	s.owner = &streamOwner{lost: make(chan struct{})}
	var behind []sentRow
	for _, r := range s.sent {
		if r.seq > seq {
			behind = append(behind, r)
		}
	}
	return s.owner, behind
}

func (o *streamOwner) isLost() bool {
	select {
	case <-o.lost:
		return true
	default:
		return false
	}
}

// streams are the streams that may be resumed.
type streams struct {
	mu   sync.Mutex
	byID map[string]*stream
}

// open starts a stream.
func (s *streams) open(sql string, end time.Time) *stream {
	id := make([]byte, streamIDBytes)
	rand.Read(id) // never fails
	opened := &stream{id: string(id), sql: sql, end: end}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*stream)
	}
	s.byID[opened.id] = opened
	return opened
}

// find returns the stream that a token belongs to and the number of the last row that the client has. Nil: it is not
// known, or the token is not for this statement.
func (s *streams) find(sql string, token []byte) (*stream, uint64) {
	if len(token) != tokenBytes {
		return nil, 0
	}
	s.mu.Lock()
	found := s.byID[string(token[:streamIDBytes])]
	s.mu.Unlock()
	if found == nil || found.sql != sql {
		return nil, 0
	}
	return found, binary.BigEndian.Uint64(token[streamIDBytes:])
}

// forgetBefore drops the streams that ended before t.
func (s *streams) forgetBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, known := range s.byID {
		if known.end.Before(t) {
			delete(s.byID, id)
		}
	}
}
