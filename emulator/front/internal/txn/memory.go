package txn

import (
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// memorySize is how many ended transactions are remembered at most. A record is some 100 bytes.
const memorySize = 100_000

// record is what is kept of a transaction that has ended: enough to answer its RPCs.
type record struct {
	at        time.Time
	session   uint64
	state     State
	cause     error
	committed int64 // nanoseconds since 1970
	mutations int64 // of the commit's stats, -1 without
}

// record makes the record of a transaction that has ended.
func (t *Txn) record() *record {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &record{at: time.Now(), session: t.session, state: t.state, cause: t.cause, mutations: -1}
	if c := t.commit; c != nil {
		r.committed = c.GetCommitTimestamp().AsTime().UnixNano()
		if s := c.GetCommitStats(); s != nil {
			r.mutations = s.GetMutationCount()
		}
	}
	return r
}

// restore makes t answer as the recorded transaction did.
func (r *record) restore(t *Txn) {
	t.state, t.cause = r.state, r.cause
	if r.state != Committed {
		return
	}
	t.commit = &spannerpb.CommitResponse{CommitTimestamp: timestamppb.New(time.Unix(0, r.committed))}
	if r.mutations >= 0 {
		t.commit.CommitStats = &spannerpb.CommitResponse_CommitStats{MutationCount: r.mutations}
	}
}

// memory has the records by number, and drops the oldest. The zero memory is empty. The Manager's lock guards it.
type memory struct {
	records map[uint64]*record
	order   []uint64 // as they ended; the first forgotten are dead until compacted
	first   int
}

func (m *memory) find(number uint64) *record { return m.records[number] }

func (m *memory) add(number uint64, r *record) {
	if m.records == nil {
		m.records = make(map[uint64]*record)
	}
	m.records[number] = r
	m.order = append(m.order, number)
	for len(m.order)-m.first > memorySize {
		m.drop()
	}
}

func (m *memory) sweep(now time.Time) {
	for m.first < len(m.order) && now.Sub(m.records[m.order[m.first]].at) > memoryLength {
		m.drop()
	}
}

func (m *memory) drop() {
	delete(m.records, m.order[m.first])
	m.first++
	if m.first > len(m.order)/2 {
		m.order = append([]uint64(nil), m.order[m.first:]...)
		m.first = 0
	}
}
