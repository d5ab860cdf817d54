package queuetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

const length = 10 * time.Second

// stream receives into a channel until ctx ends.
func stream(ctx context.Context, m *queuetest.Memory, o queue.ReceiveOptions) <-chan *queue.Message {
	got := make(chan *queue.Message, 1000)
	go func() {
		defer close(got)
		for message, err := range m.Queue().Receive(ctx, o) {
			if err == nil {
				got <- message
			}
		}
	}()
	return got
}

func TestMessagesComeWhenDueAndOncePerLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{Offset: -30 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, b := stream(ctx, m, queue.ReceiveOptions{}), stream(ctx, m, queue.ReceiveOptions{})
		synctest.Wait()
		send(t, m, out(1, "now"))
		later := out(2, "later")
		later.DeliverTime = m.Now().Add(5*time.Second + 1)
		send(t, m, later)
		synctest.Wait()
		require.Equal(t, 1, len(a)+len(b), "at once, to one of them")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, len(a)+len(b), "not early by a nanosecond")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 2, len(a)+len(b))
		time.Sleep(length - 5*time.Second - 2)
		synctest.Wait()
		require.Equal(t, 2, len(a)+len(b))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, 3, len(a)+len(b), "the first one again, when its lease has ended")
		require.Equal(t, 1, m.Counts().LeasesEnded)
		require.Equal(t, 3, m.Counts().Delivered)
	})
}

func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{})
		begun := time.Now()
		for message, err := range m.Queue().Receive(t.Context(), queue.ReceiveOptions{MaxDuration: 4500 * time.Millisecond}) {
			t.Errorf("%v, %v from an empty queue", message, err)
		}
		require.Equal(t, 5*time.Second, time.Since(begun), "rounded up to seconds")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last error
		for _, err := range m.Queue().Receive(ctx, queue.ReceiveOptions{}) {
			last = err
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.Equal(t, codes.DeadlineExceeded, spanner.ErrCode(last))
		require.Equal(t, 2, m.Counts().Streams)
	})
}

// A batch is leased as a whole. Who leaves the stream in the middle of it leaves the rest to wait out its lease.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{})
		send(t, m, out(1, ""), out(2, ""), out(3, ""), out(4, ""), out(5, ""))
		var last []bool
		for message := range m.Queue().Receive(t.Context(), queue.ReceiveOptions{MaxBatch: 2}) {
			last = append(last, message.LastOfBatch)
			if len(last) == 3 {
				break
			}
		}
		require.Equal(t, []bool{false, true, false}, last)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rest := stream(ctx, m, queue.ReceiveOptions{})
		synctest.Wait()
		require.Len(t, rest, 1)
		time.Sleep(length)
		synctest.Wait()
		require.Len(t, rest, 6)
	})
}

func TestRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{Offset: time.Hour})
		q := m.Queue()
		send(t, m, out(1, ""), out(2, ""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := stream(ctx, m, queue.ReceiveOptions{})
		first, second := <-got, <-got
		require.True(t, first.Lease.End.Equal(m.Now().Add(length)), "stamped by the queue's clock")

		time.Sleep(length - 1)
		answers, err := q.Renew(t.Context(), first.Lease, second.Lease, queue.Lease{Token: "never given"})
		require.NoError(t, err)
		require.True(t, answers[0].Renewed)
		require.True(t, answers[0].Lease.End.Equal(m.Now().Add(length)))
		require.NotEqual(t, first.Lease.Token, answers[0].Lease.Token)
		require.False(t, answers[2].Renewed)

		again, err := q.Renew(t.Context(), first.Lease)
		require.NoError(t, err)
		require.False(t, again[0].Renewed, "the old token is dead")

		require.NoError(t, ack(t.Context(), m, second))
		raw, err := m.Renew(t.Context(), []string{answers[1].Lease.Token, first.Lease.Token})
		require.NoError(t, err)
		require.Len(t, raw, 1, "an acknowledged message's token is answered, a dead one is not")
		require.Empty(t, raw[answers[1].Lease.Token].Token)

		time.Sleep(length)
		synctest.Wait()
		ended, err := q.Renew(t.Context(), answers[0].Lease)
		require.NoError(t, err)
		require.False(t, ended[0].Renewed)
		require.Len(t, got, 1, "it came again instead")
	})
}

// A clock that steps makes messages due, and changes no lease.
func TestSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{})
		later := out(2, "")
		later.DeliverTime = m.Now().Add(time.Minute)
		send(t, m, out(1, ""), later)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := stream(ctx, m, queue.ReceiveOptions{})
		synctest.Wait()
		require.Len(t, got, 1)
		m.SetOffset(time.Minute)
		synctest.Wait()
		require.Len(t, got, 2)
		require.Zero(t, m.Counts().LeasesEnded)
		now, err := m.Queue().ServerTime(t.Context())
		require.NoError(t, err)
		require.True(t, now.Equal(m.Now()))
	})
}
