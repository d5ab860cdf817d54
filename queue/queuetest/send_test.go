package queuetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

func TestSend(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{Offset: time.Hour})
	q := m.Queue()
	at := m.Now().Add(123456789 * time.Nanosecond)
	require.NoError(t, q.Send(t.Context(), []queue.Outgoing{
		{Key: spanner.Key{spanner.NullString{}, 1}, Payload: []byte("null part"), DeliverTime: at},
		out(2, "now"),
	}))
	messages := peek(t, m)
	require.Len(t, messages, 2)
	require.True(t, messages[1].DeliverTime.Equal(at), "times keep their nanoseconds")
	require.Equal(t, spanner.NullString{}, messages[1].Key[0])
	require.Zero(t, messages[0].DeliverTime.Nanosecond()%1000, "now is stamped to the microsecond, as the service does")
	require.WithinDuration(t, m.Now(), messages[0].DeliverTime, time.Minute)

	require.ErrorIs(t, q.Send(t.Context(), []queue.Outgoing{out(3, ""), out(2, "now")}), queue.ErrExists)
	require.NoError(t, q.Send(t.Context(), []queue.Outgoing{out(3, ""), out(2, "now"), out(3, "")}, queue.OrIgnore()))
	require.ErrorIs(t, q.Send(t.Context(), []queue.Outgoing{out(4, ""), out(2, "other")}, queue.OrIgnore()), queue.ErrMismatch)
	require.Len(t, peek(t, m), 4)

	for _, refused := range []queue.Outgoing{
		out(5, strings.Repeat("x", 101)),
		out(5, "\xff"),
		{Key: spanner.Key{"c"}},
		{Key: spanner.Key{"c", nil}},
		{Key: spanner.Key{"c", 5}, Priority: 1},
		{Key: spanner.Key{"c", 5}, DeliverTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		require.ErrorIs(t, q.Send(t.Context(), []queue.Outgoing{refused}), queue.ErrInvalid, "%v", refused)
	}

	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(4), s.Ready+s.Delayed)
	n, err := q.Purge(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n)
	queuetest.RequireEmpty(t, q)
}

// What the caller gave, or got, is not the queue's own memory.
func TestPayloadsAreCopied(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	payload := []byte("work")
	require.NoError(t, m.Queue().Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"c", 1}, Payload: payload}}))
	payload[0] = 'x'
	got := peek(t, m)[0].Payload
	require.Equal(t, "work", string(got))
	got[0] = 'x'
	require.Equal(t, "work", string(peek(t, m)[0].Payload))
}

func TestWhatNeedsTheDatabase(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	q := m.Queue()
	_, err := q.SendMutation(out(1, ""))
	require.ErrorIs(t, err, queuetest.ErrNoSpanner)
	_, err = q.SendStatement(out(1, ""))
	require.ErrorIs(t, err, queuetest.ErrNoSpanner)
	var tx *spanner.ReadWriteTransaction
	require.ErrorIs(t, q.Ack(t.Context(), tx, &queue.Message{}), queuetest.ErrNoSpanner)
	_, err = q.AckAll(t.Context(), tx, nil)
	require.ErrorIs(t, err, queuetest.ErrNoSpanner)
	require.Nil(t, m.Client())
}

func TestNewRefusesNonsense(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { queuetest.New(schema.Queue{}, queuetest.Options{}) })
	require.Panics(t, func() { queuetest.New(mails, queuetest.Options{LeaseLength: -1}) })
	float := mails
	float.KeyColumns = []schema.Column{{Name: "F", Type: schema.Float64()}}
	require.Panics(t, func() { queuetest.New(float, queuetest.Options{}) })
	require.Equal(t, 10*time.Second, queuetest.New(mails, queuetest.Options{}).LeaseLength())
}

// failing is a TB that notes the failure.
type failing struct{ text string }

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	if f.text == "" {
		f.text = fmt.Sprintf(format, args...)
	}
}

func TestAssertionsFail(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	delayed := out(1, "")
	delayed.DeliverTime = m.Now().Add(time.Hour)
	send(t, m, delayed)
	queuetest.RequireKeys(t, m.Queue(), spanner.Key{"c", 1})

	var f failing
	queuetest.RequireEmpty(&f, m.Queue())
	require.Contains(t, f.text, "has 1 messages")
	f = failing{}
	queuetest.RequireKeys(&f, m.Queue())
	require.Contains(t, f.text, "should not have")
	f = failing{}
	queuetest.RequireKeys(&f, m.Queue(), spanner.Key{"c", 1}, spanner.Key{"c", 2})
	require.Contains(t, f.text, "no message of key")
	f = failing{}
	queuetest.RequireKeys(&f, m.Queue(), spanner.Key{1})
	require.Contains(t, f.text, "cannot have the key")
}
