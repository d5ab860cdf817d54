package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func (w *world) renew(leases ...queue.Lease) []queue.Renewal {
	w.t.Helper()
	renewals, err := w.queue.Renew(w.t.Context(), leases...)
	require.NoError(w.t, err)
	require.Len(w.t, renewals, len(leases))
	return renewals
}

func TestRenewRotatesTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	lease := m.Lease
	for range 3 {
		r := w.renew(lease)[0]
		require.True(t, r.Renewed)
		require.NotEqual(t, lease.Token, r.Lease.Token)
		require.False(t, r.Lease.End.Before(lease.End))
		require.Equal(t, []queue.Renewal{{}}, w.renew(lease), "the old token is dead")
		lease = r.Lease
	}
	require.NotEqual(t, m.Lease, lease, "the message keeps the lease it came with")
}

func TestRenewOfWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("acked", "held")
	leases := make(map[string]queue.Lease)
	for _, m := range w.receive(2) {
		leases[m.Key[0].(string)] = m.Lease
		if m.Key[0] == "acked" {
			require.NoError(t, w.ack(m))
		}
	}
	// Answers come in the order of the leases, whatever the order of the rows is.
	renewals := w.renew(leases["acked"], leases["held"], queue.Lease{Token: "never given"})
	require.Equal(t, queue.Renewal{}, renewals[0])
	require.True(t, renewals[1].Renewed)
	require.Equal(t, queue.Renewal{}, renewals[2])
}

// A lease that is renewed in time keeps the message from others; when it is not, it comes again and the token is dead.
func TestRenewKeepsTheMessage(t *testing.T) {
	t.Parallel()
	const length = 2 * time.Second // a renewal may take most of it
	w := newWorldWith(t, tasks, front.Options{LeaseLength: length})
	m := w.one("m1")
	others := w.open(queue.ReceiveOptions{})
	lease := m.Lease
	for began := time.Now(); time.Since(began) < 2*length; {
		others.none(length / 6)
		r := w.renew(lease)[0]
		require.True(t, r.Renewed)
		lease = r.Lease
	}
	again := others.next()
	require.Equal(t, m.Key, again.Key)
	require.Equal(t, m.DeliverTime, again.DeliverTime)
	require.False(t, w.renew(lease)[0].Renewed)
}

func TestRenewManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	const n = 950
	w.send(names(n)...)
	ms := w.receive(n)
	leases := make([]queue.Lease, n)
	for i, m := range ms {
		leases[i] = m.Lease
	}
	require.NoError(t, w.ack(ms[7]))
	calls := w.fault(fault.Rule{SQL: "RENEWLEASE_Tasks", Do: fault.Delay(0)})
	for i, r := range w.renew(leases...) {
		require.Equal(t, i != 7, r.Renewed, "lease %d", i)
	}
	require.Equal(t, 2, calls.Matched(), "one call for up to 900")
}

func TestRenewNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	calls := w.fault(fault.Rule{SQL: "RENEWLEASE_Tasks", Do: fault.Delay(0)})
	require.Empty(t, w.renew())
	_, err := w.queue.Renew(t.Context(), queue.Lease{Token: "a"}, queue.Lease{})
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, "lease 1")
	require.Zero(t, calls.Matched())
}

// An answer that is lost makes the client ask again, unseen: the lease then lives on under a token that nobody knows.
func TestRenewWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	h := w.fault(fault.Rule{SQL: "RENEWLEASE_Tasks", Nth: 1, Do: fault.After(codes.Unavailable, "broken")})
	require.Equal(t, []queue.Renewal{{}}, w.renew(m.Lease))
	require.Equal(t, 1, h.Applied())
	require.NoError(t, w.ack(m), "an ack needs no token")
}

func TestRenewTellsAnErrorAndObeysItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	w.fault(fault.Rule{SQL: "RENEWLEASE_Tasks", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no EXECUTE")})
	renewals, err := w.queue.Renew(t.Context(), m.Lease)
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
	require.ErrorContains(t, err, "Tasks")
	require.Nil(t, renewals)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w.fault(fault.Rule{SQL: "RENEWLEASE_Tasks", Nth: 1, Do: fault.Hold()})
	_, err = w.queue.Renew(ctx, m.Lease)
	require.Equal(t, codes.DeadlineExceeded, spanner.ErrCode(err))
}

// ServerTime is the database's, however far this machine's clock is off: never behind it, ahead by a round trip at most.
func TestServerTime(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{0, 30 * time.Second, -30 * time.Second} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, tasks, front.Options{ClockOffset: offset})
			asked := w.fault(fault.Rule{SQL: "CURRENT_TIMESTAMP", Do: fault.Delay(0)})
			check := func(source string) {
				t.Helper()
				before := time.Now()
				now, err := w.queue.ServerTime(t.Context())
				passed := time.Since(before)
				require.NoError(t, err)
				truth := before.Add(offset)
				require.False(t, now.Before(truth), "%s: behind the database by %v", source, truth.Sub(now))
				require.Less(t, now.Sub(truth), passed+5*time.Second, "%s: ahead of the database", source)
			}
			check("asked")
			check("remembered")
			require.Equal(t, 1, asked.Matched(), "the second time nobody is asked")

			// A delay counts from then: the message never comes early by the database's clock, nor much too late.
			m := w.one("m1")
			renewal := w.renew(m.Lease)[0]
			require.True(t, renewal.Renewed)
			check("told by a renewal")
			const delay = 300 * time.Millisecond
			now, err := w.queue.ServerTime(t.Context())
			require.NoError(t, err)
			began := time.Now()
			_, err = w.resend(m, now.Add(delay), nil)
			require.NoError(t, err)
			again := w.open(queue.ReceiveOptions{}).next()
			require.GreaterOrEqual(t, time.Since(began), delay)
			require.Equal(t, now.Add(delay).UTC(), again.DeliverTime)
			require.Equal(t, 1, asked.Matched())
		})
	}
}

func TestServerTimeTellsItsError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.fault(fault.Rule{SQL: "CURRENT_TIMESTAMP", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no")})
	_, err := w.queue.ServerTime(t.Context())
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
	require.ErrorContains(t, err, "server time")
}
