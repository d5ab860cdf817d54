package queuetest

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/queue"
)

// TB is what the assertions need of a *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// lookTimeout bounds an assertion's look at the queue.
const lookTimeout = 30 * time.Second

const (
	// maxLooked is how many messages an assertion looks at.
	maxLooked = 10_000
	// maxNamed is how many of them it names when it fails.
	maxNamed = 10
)

// RequireEmpty fails the test unless the queue, of any kind, has no message at all: due, leased or delayed.
func RequireEmpty(t TB, q *queue.Queue) {
	t.Helper()
	if left := look(t, q); len(left) > 0 {
		t.Fatalf("queue %s has %d messages, it should be empty; the first is %v", q.Name(), len(left), left[0])
	}
}

// RequireKeys fails the test unless the keys of the queue's messages, of any kind of queue, are the given ones. Their order
// does not matter.
func RequireKeys(t TB, q *queue.Queue, keys ...spanner.Key) {
	t.Helper()
	codec, err := rowcodec.NewKey(q.Definition())
	if err != nil {
		t.Fatalf("queue %s: %v", q.Name(), err)
	}
	want := make(map[string]spanner.Key, len(keys))
	for _, k := range keys {
		normal, err := codec.Normalize(k)
		if err != nil {
			t.Fatalf("queue %s cannot have the key %v: %v", q.Name(), k, err)
		}
		want[rowcodec.ID(normal)] = k
	}
	for _, m := range look(t, q) {
		id := rowcodec.ID(m.Key)
		if _, wanted := want[id]; !wanted {
			t.Fatalf("queue %s has a message that it should not have: %v", q.Name(), m)
		}
		delete(want, id)
	}
	for _, k := range want {
		t.Fatalf("queue %s has no message of key %v", q.Name(), k)
	}
}

// RequireSent fails the test unless a message of the key is in the queue, of any kind, due or not, and returns it. Key parts
// may have any type that a send takes.
func RequireSent(t TB, q *queue.Queue, key spanner.Key) *queue.Message {
	t.Helper()
	codec, err := rowcodec.NewKey(q.Definition())
	if err != nil {
		t.Fatalf("queue %s: %v", q.Name(), err)
	}
	want, err := codec.Normalize(key)
	if err != nil {
		t.Fatalf("queue %s cannot have the key %v: %v", q.Name(), key, err)
	}
	messages := look(t, q)
	for _, m := range messages {
		if rowcodec.ID(m.Key) == rowcodec.ID(want) {
			return m
		}
	}
	t.Fatalf("queue %s has no message of key %v; it has %d, the first of them %v", q.Name(), key, len(messages),
		messages[:min(len(messages), maxNamed)])
	return nil
}

// RequireDue is RequireSent, and fails the test besides unless the message is due at the given time, give or take within. A
// time that the database chose, for a Snooze or a retry say, is known only so well; one that was sent is kept to the
// nanosecond.
func RequireDue(t TB, q *queue.Queue, key spanner.Key, at time.Time, within time.Duration) *queue.Message {
	t.Helper()
	m := RequireSent(t, q, key)
	if off := m.DeliverTime.Sub(at); off > within || off < -within {
		t.Fatalf("queue %s: the message of key %v is due at %v, %v from the wanted %v; %v is allowed", q.Name(), key,
			m.DeliverTime.UTC().Format(time.RFC3339Nano), off, at.UTC().Format(time.RFC3339Nano), within)
	}
	return m
}

func look(t TB, q *queue.Queue) []*queue.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	messages, err := q.Peek(ctx, maxLooked)
	if err != nil {
		t.Fatalf("queue %s could not be looked at: %v", q.Name(), err)
	}
	return messages
}
