package queuetest_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// failure is a TB that says what it was failed with. It panics, as a real Fatalf does not return either.
type failure struct{}

func (failure) Helper()                           {}
func (failure) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func failed(f func(queuetest.TB)) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = v.(string)
		}
	}()
	f(failure{})
	return ""
}

func TestAssertions(t *testing.T) {
	t.Parallel()
	m := queuetest.New(mails, queuetest.Options{})
	q := m.Queue()
	queuetest.RequireEmpty(t, q)
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	send(t, m, out(1, "now"), queue.Outgoing{Key: spanner.Key{nil, 2}, Payload: []byte("later"), DeliverTime: at})

	queuetest.RequireKeys(t, q, spanner.Key{"c", 1}, spanner.Key{nil, 2})
	require.Equal(t, "now", string(queuetest.RequireSent(t, q, spanner.Key{"c", 1}).Payload))
	require.Equal(t, "later", string(queuetest.RequireSent(t, q, spanner.Key{spanner.NullString{}, int64(2)}).Payload))
	require.Equal(t, "later", string(queuetest.RequireDue(t, q, spanner.Key{nil, 2}, at, 0).Payload))
	queuetest.RequireDue(t, q, spanner.Key{nil, 2}, at.Add(time.Second), time.Second)
	queuetest.RequireDue(t, q, spanner.Key{nil, 2}, at.Add(-time.Second), time.Second)

	for want, f := range map[string]func(queuetest.TB){
		"it should be empty":        func(t queuetest.TB) { queuetest.RequireEmpty(t, q) },
		"should not have":           func(t queuetest.TB) { queuetest.RequireKeys(t, q, spanner.Key{"c", 1}) },
		`no message of key ("c",3)`: func(t queuetest.TB) { queuetest.RequireSent(t, q, spanner.Key{"c", 3}) },
		"cannot have the key":       func(t queuetest.TB) { queuetest.RequireSent(t, q, spanner.Key{"c"}) },
		"1ns from the wanted":       func(t queuetest.TB) { queuetest.RequireDue(t, q, spanner.Key{nil, 2}, at.Add(-1), 0) },
		"-2s from the wanted": func(t queuetest.TB) {
			queuetest.RequireDue(t, q, spanner.Key{nil, 2}, at.Add(2*time.Second), time.Second)
		},
		`has no message of key ("c",4)`: func(t queuetest.TB) { queuetest.RequireDue(t, q, spanner.Key{"c", 4}, at, time.Hour) },
	} {
		require.Contains(t, failed(f), want)
	}
}
