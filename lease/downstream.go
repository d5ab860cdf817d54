package lease

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// DownstreamKey returns an idempotency key for a call to the outside: the same for every attempt at the message, on every
// worker, and another for every other message and name. name tells the calls of one handler apart: "charge", "mail". The
// key is 64 hexadecimal digits; it is a hash, from which nothing of the message can be read.
//
// It is made of the queue's name, the message's key and name. A message's key is its identity: when your program sends the
// same key again and means something new by it (the invoice of an account, each month), the keys would be the same ones,
// and the other side would take the second call for a repetition of the first. Then give an occurrence that is new each
// time and the same for all attempts: the month, from the payload, say. DeliverTime is no such thing: it changes when the
// message is retried.
func (h *Held) DownstreamKey(name string, occurrence ...string) string {
	return downstreamKey(h.receiver.queue.Name(), h.Message().Key, name, occurrence)
}

func downstreamKey(queue string, key spanner.Key, name string, occurrence []string) string {
	hash := sha256.New()
	for _, part := range append([]string{"spanqueue downstream key 1", queue, rowcodec.ID(key), name}, occurrence...) {
		// The length before each part keeps ("ab", "c") and ("a", "bc") apart.
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = hash.Write(length[:])
		_, _ = io.WriteString(hash, part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
