package queues_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

const resumable = "SELECT * FROM RECEIVE_Tasks(max_duration => '3s', max_batch_size => 4)"

func (b *bench) resume(token []byte) *open {
	return b.open(&spannerpb.ExecuteSqlRequest{Sql: resumable, ResumeToken: token})
}

func TestResume(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue)
	require.NoError(t, b.commit(send("1", ""), send("2", ""), send("3", ""), send("4", "")))
	begun := time.Now()
	cut := b.resume(nil)
	seen := map[string]bool{}
	token := func(p *spannerpb.PartialResultSet) []byte {
		require.False(t, seen[string(p.GetResumeToken())], "a token is used twice")
		seen[string(p.GetResumeToken())] = true
		return p.GetResumeToken()
	}
	token(cut.next(t))
	first := cut.message(t)
	rest := []message{cut.message(t), cut.message(t), cut.message(t)}
	require.True(t, rest[2].last)

	// The client has the first row only. Of the others, one is acknowledged and one is renewed by somebody.
	require.NoError(t, b.commit(ack(rest[0].id)))
	require.Len(t, b.renew(rest[1].lease), 1)
	resumed := b.resume(first.resume)
	require.Equal(t, codes.Aborted, status.Code(cut.end(t)), "one call at a time")
	head := resumed.next(t)
	require.NotNil(t, head.GetMetadata())
	token(head)
	again := resumed.message(t)
	again.resume, rest[2].resume = nil, nil
	require.Equal(t, rest[2], again, "the same lease")
	require.NoError(t, b.commit(send("5", "")))
	fifth := resumed.message(t)
	require.Equal(t, "5", fifth.id)
	require.NoError(t, resumed.end(t))
	require.WithinDuration(t, begun.Add(3*time.Second), time.Now(), 2*time.Second, "the original end")

	// The stream is over, but its last rows may not have arrived.
	late := b.resume(again.resume)
	late.next(t)
	late.cancel()
	late = b.resume(fifth.resume)
	require.NotNil(t, late.next(t).GetMetadata())
	require.NoError(t, late.end(t))
}

func TestResumeAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: 200 * time.Millisecond}, taskQueue)
	require.NoError(t, b.commit(send("1", "")))
	cut := b.resume(nil)
	head := cut.next(t)
	first := cut.message(t)
	cut.cancel()
	require.Equal(t, codes.Canceled, status.Code(cut.end(t)))
	until(first.expires)
	resumed := b.resume(head.GetResumeToken())
	again := resumed.message(t)
	require.Equal(t, "1", again.id)
	require.NotEqual(t, first.lease, again.lease, "delivered anew")
}

func TestUnknownTokensStartANewStream(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue)
	require.NoError(t, b.commit(send("1", "")))
	known := b.resume(nil)
	token := known.next(t).GetResumeToken()
	known.message(t)
	for name, token := range map[string][]byte{
		"too short": token[:10],
		"unknown":   make([]byte, len(token)),
		"of another statement": func() []byte {
			o := b.receive("max_duration => '1m'")
			defer o.cancel()
			return o.next(t).GetResumeToken()
		}(),
	} {
		s := b.resume(token)
		require.NotNil(t, s.next(t).GetMetadata(), name)
		s.silent(t, 20*time.Millisecond)
	}
}

// What was leased for a receiver that went away before its row was tried is ready at once, not when the lease ends.
func TestEarlyClose(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	b := newBench(t, queues.Options{LeaseLength: lease}, taskQueue)
	var sends []*spannerpb.Mutation
	for i := range 4 {
		sends = append(sends, send(fmt.Sprint(i), ""))
	}
	require.NoError(t, b.commit(sends...))
	s := b.receive("")
	taken := s.message(t)
	s.cancel()
	require.Equal(t, codes.Canceled, status.Code(s.end(t)))
	next := b.receive("")
	got := next.ids(t, 2) // one row was taken, another was on its way
	require.True(t, time.Now().Before(taken.expires))
	require.NotContains(t, got, taken.id)
	require.NoError(t, b.commit(ack(got[0]), ack(got[1])))
	got = append(got, next.ids(t, 2)...)
	require.False(t, time.Now().Before(taken.expires))
	require.Len(t, unique(got), 4)
}

func TestALeaseThatEndedBeforeItsRowWasSentIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: 300 * time.Millisecond, Redelivery: []time.Duration{time.Hour}}, taskQueue)
	require.NoError(t, b.commit(send("1", ""), send("2", ""), send("3", "")))
	s := b.receive("max_batch_size => 3")
	m := s.message(t)
	until(m.expires)
	require.NotEmpty(t, s.next(t).GetValues()) // this one was under way before its lease ended
	s.silent(t, 100*time.Millisecond)
}
