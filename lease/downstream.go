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
// worker, and another for every other message of the queue and every other name. name tells the calls of one handler
// apart: "charge", "mail". The key is 64 hexadecimal digits; it is a hash, from which nothing of the message can be read.
//
// It is made of the queue's name, the message's key, name and occurrence, and of nothing else. Where two messages agree in
// these and mean two things, the other side takes the second call for a repetition of the first, and does not do it. Tell
// them apart by an occurrence, one string or several, that all attempts at a message share:
//
//   - Your program sends the same key again and means something new by it (the invoice of an account, each month). Give what
//     is new: the month, from the payload, say. DeliverTime is no such thing: it changes when the message is retried.
//   - Queues of one name in several databases (one for each tenant, or one for trials) call the same account outside. Give
//     the tenant or the database.
//   - A dead letter is redriven, and the other side has stored its refusal under the key. It answers that again, until the
//     occurrence changes with what was mended in the payload.
//
// The other side forgets keys, some after a day: a repetition that comes later is a new call.
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
