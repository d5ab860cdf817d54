package ident

import (
	"encoding/binary"
	"hash/fnv"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// ReadWrite is the id of a read-write or partitioned DML transaction.
type ReadWrite struct {
	Front  uint64 // the front that began it
	Number uint64 // counts up within that front
}

// ID is the transaction id for clients.
func (t ReadWrite) ID() []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], t.Front)
	binary.BigEndian.PutUint64(b[8:], t.Number)
	return []byte(seal(kindReadWrite, b[:]))
}

// ReadOnly is the id of a read-only transaction: it is nothing but a timestamp to read at.
type ReadOnly struct {
	Time    *timestamppb.Timestamp
	session uint64 // hash of the session's name
}

// NewReadOnly makes the id of a transaction of the named session.
func NewReadOnly(session string, at *timestamppb.Timestamp) ReadOnly {
	return ReadOnly{Time: at, session: hash(session)}
}

// Of tells whether the transaction was begun on the named session.
func (t ReadOnly) Of(session string) bool { return t.session == hash(session) }

// ID is the transaction id for clients.
func (t ReadOnly) ID() []byte {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.Time.GetSeconds()))
	binary.BigEndian.PutUint32(b[8:12], uint32(t.Time.GetNanos()))
	binary.BigEndian.PutUint64(b[12:], t.session)
	return []byte(seal(kindReadOnly, b[:]))
}

// Transaction reads a transaction id: exactly one of the two is set, or neither when the id is foreign.
func Transaction(id []byte) (rw *ReadWrite, ro *ReadOnly) {
	k, b, ok := open(string(id))
	switch {
	case ok && k == kindReadWrite && len(b) == 16:
		return &ReadWrite{Front: binary.BigEndian.Uint64(b[:8]), Number: binary.BigEndian.Uint64(b[8:])}, nil
	case ok && k == kindReadOnly && len(b) == 20:
		at := &timestamppb.Timestamp{
			Seconds: int64(binary.BigEndian.Uint64(b[:8])),
			Nanos:   int32(binary.BigEndian.Uint32(b[8:12])),
		}
		if at.CheckValid() != nil {
			return nil, nil
		}
		return nil, &ReadOnly{Time: at, session: binary.BigEndian.Uint64(b[12:])}
	}
	return nil, nil
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// Partition is what a partition token says: the emulator's own token, and the read-only transaction for which it was
// made. The emulator takes it back only on the same session and transaction, which the front keeps under Transaction.
type Partition struct {
	Transaction ReadOnly
	Token       []byte
}

// Bytes is the partition token for clients.
func (p Partition) Bytes() []byte {
	id := p.Transaction.ID()
	body := append([]byte{byte(len(id))}, id...)
	return []byte(seal(kindPartition, append(body, p.Token...)))
}

// ParsePartition reads a partition token.
func ParsePartition(token []byte) (Partition, bool) {
	k, b, ok := open(string(token))
	if !ok || k != kindPartition || len(b) < 1 || len(b) < 1+int(b[0]) {
		return Partition{}, false
	}
	_, ro := Transaction(b[1 : 1+int(b[0])])
	if ro == nil {
		return Partition{}, false
	}
	return Partition{Transaction: *ro, Token: b[1+int(b[0]):]}, true
}
