package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	service := terms{length: 10 * time.Second, margin: 500 * time.Millisecond}
	after := func(t time.Time) time.Duration { return t.Sub(at) }

	for _, c := range []struct {
		name string
		got  time.Duration
		want time.Duration
	}{
		{"the bound counts from the send time and leaves the margin", after(service.bound(at)), 9500 * time.Millisecond},
		{"a lease is dead for certain a full length after its answer", after(service.deadBy(at)), 10 * time.Second},
		{"unrenewed, a message is started in the first half", after(service.startUntil(at)), 5 * time.Second},
		{"a renewal is due at half the lease", after(service.renewAt(at, 0)), 5 * time.Second},
		{"or a little earlier", after(service.renewAt(at, 1)), 4750 * time.Millisecond},
		{"never later", after(service.renewAt(at, 0.5)), 4875 * time.Millisecond},
		{"a call takes along what is due soon", service.together(), 1250 * time.Millisecond},
		{"an unanswered token is sent again at half of what is left", service.askAgain(4*time.Second, 0), 2 * time.Second},
		{"later where calls take long", service.askAgain(4*time.Second, 1500*time.Millisecond), 3 * time.Second},
		{"at the end where they take very long", service.askAgain(4*time.Second, time.Minute), 4 * time.Second},
		{"but not in a hot loop", service.askAgain(time.Millisecond, 0), 500 * time.Millisecond},
		{"nor when nothing is left", service.askAgain(-time.Second, time.Second), 500 * time.Millisecond},
		{"a first failure is retried soon", service.retryAfter(1, 0), 78125 * time.Microsecond},
		{"with a random half", service.retryAfter(1, 1), 156250 * time.Microsecond},
		{"then later", service.retryAfter(3, 1), 625 * time.Millisecond},
		{"up to an eighth of the lease", service.retryAfter(4, 1), 1250 * time.Millisecond},
		{"for ever", service.retryAfter(1_000_000, 1), 1250 * time.Millisecond},
	} {
		require.Equal(t, c.want, c.got, c.name)
	}
}

// The work of a deferral ends before the message comes due, however the two clocks drift apart within reason.
func TestDeferralEndsBeforeDue(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, length := range []time.Duration{time.Second, 10 * time.Second} {
		terms := terms{length: length, margin: length / marginPart}
		for _, longest := range []time.Duration{time.Millisecond, time.Second, time.Hour, 365 * 24 * time.Hour} {
			end, dueIn := terms.deferral(at, longest)
			require.Equal(t, longest, end.Sub(at), "the work has the time it was given")
			drift := dueIn * 5 / 10_000
			require.GreaterOrEqual(t, dueIn-drift-longest, terms.margin-terms.margin/100, "due too early for %v", longest)
		}
	}
}

func TestEarliest(t *testing.T) {
	t.Parallel()
	early, late, never := time.Unix(1, 0), time.Unix(2, 0), time.Time{}
	require.Equal(t, early, earliest(early, late))
	require.Equal(t, early, earliest(late, early))
	require.Equal(t, early, earliest(early, never))
	require.Equal(t, early, earliest(never, early))
	require.Equal(t, never, earliest(never, never))
}

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failures int
		full     bool
		random   float64
		want     time.Duration
	}{
		{1, false, 0, 50 * time.Millisecond},
		{1, false, 1, 100 * time.Millisecond},
		{3, false, 1, 400 * time.Millisecond},
		{8, false, 1, 10 * time.Second},
		{1 << 40, false, 0, 5 * time.Second},
		{1, true, 0, 500 * time.Millisecond},
		{4, true, 1, 8 * time.Second},
		{5, true, 1, 10 * time.Second},
	} {
		require.Equal(t, c.want, pauseAfter(c.failures, c.full, c.random), "%+v", c)
	}
}
