package idempotency

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	var (
		now   = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		same  = FingerprintBytes([]byte("same"))
		other = FingerprintBytes([]byte("other"))
	)
	open := func(s state, owner string, leased time.Duration) *record {
		return &record{fingerprint: same, state: s, owner: owner, leasedAt: now.Add(-leased), lease: 30 * time.Second}
	}
	final := func(s state, owner string, age time.Duration) *record {
		return &record{fingerprint: same, state: s, owner: owner, completedAt: now.Add(-age), retain: 48 * time.Hour}
	}
	const h = time.Hour
	for _, c := range []struct {
		name string
		r    *record
		fp   Fingerprint
		want verdict
	}{
		{"no record", nil, same, fresh},

		{"in progress, live", open(inProgress, "them", 29*time.Second), same, busy},
		{"in progress, live, other payload", open(inProgress, "them", 0), other, mismatched},
		{"in progress, lease ends now", open(inProgress, "them", 30*time.Second), same, abandoned},
		{"in progress, lease over", open(inProgress, "them", h), same, abandoned},
		{"in progress, lease over, other payload", open(inProgress, "them", h), other, mismatched},
		{"in progress for a year is not expired", open(inProgress, "them", 8760*h), other, mismatched},
		{"given up", open(inProgress, "", 0), same, abandoned},
		{"given up, other payload", open(inProgress, "", 0), other, mismatched},
		{"leased in the future of our read", open(inProgress, "them", -time.Second), same, busy},
		{"ours", open(inProgress, "us", 0), same, ours},
		{"ours, lease over", open(inProgress, "us", h), same, ours},
		{"ours, other payload", open(inProgress, "us", 0), other, mismatched},

		{"uncertain, live", open(uncertain, "them", 0), same, busy},
		{"uncertain, lease over", open(uncertain, "them", h), same, unsure},
		{"uncertain, given up", open(uncertain, "", 0), same, unsure},
		{"uncertain, other payload", open(uncertain, "", 0), other, mismatched},
		{"uncertain, ours", open(uncertain, "us", 0), same, ours},

		{"completed", final(completed, "them", h), same, ended},
		{"completed, ours", final(completed, "us", h), same, ended},
		{"completed, other payload", final(completed, "them", h), other, mismatched},
		{"failed", final(failed, "them", h), same, ended},
		{"failed, other payload", final(failed, "them", h), other, mismatched},
		{"completed, a moment before expiry", final(completed, "them", 48*h-1), same, ended},
		{"completed, expires now", final(completed, "them", 48*h), same, fresh},
		{"completed, expired", final(completed, "them", 49*h), same, fresh},
		{"completed, expired, other payload", final(completed, "them", 49*h), other, fresh},
		{"completed, expired, ours", final(completed, "us", 49*h), same, fresh},
		{"failed, expired", final(failed, "them", 49*h), same, fresh},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, judge(c.r, c.fp, "us", now))
		})
	}
}

// A look has no token, and a record that was given up has none either: they
// must not be taken for the same.
func TestJudgeWithoutAToken(t *testing.T) {
	t.Parallel()
	r := &record{state: inProgress}
	require.Equal(t, abandoned, judge(r, Fingerprint{}, "", time.Now()))
}

func TestRefuseTellsHowLongToWait(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &record{state: inProgress, owner: "them", leasedAt: now.Add(-10 * time.Second), lease: 30 * time.Second}
	err := busy.refuse(r, now)
	require.ErrorIs(t, err, ErrInProgress)
	after, ok := RetryAfter(err)
	require.True(t, ok)
	require.Equal(t, 20*time.Second, after)

	_, ok = RetryAfter(ErrMismatch)
	require.False(t, ok)
	for _, v := range []verdict{fresh, ours, abandoned, ended} {
		require.NoError(t, v.refuse(r, now))
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	var j journal
	text, err := j.encode()
	require.NoError(t, err)
	require.Nil(t, text)
	require.Empty(t, j.point())

	one := j.with(0, entry{Name: "ride", Kind: local, Value: []byte(`"r1"`)})
	open := one.with(1, entry{Name: "charge", Kind: outside, Open: true})
	closed := open.with(1, entry{Name: "charge", Kind: outside, Value: []byte(`9007199254740993`)})
	require.Len(t, one, 1)
	require.Equal(t, "ride", open.point(), "an open step has not passed")
	require.Equal(t, "charge", closed.point())

	text, err = closed.encode()
	require.NoError(t, err)
	back, err := parseJournal(text)
	require.NoError(t, err)
	require.Equal(t, closed, back)

	_, found, err := closed.at(2, "mail", outside)
	require.NoError(t, err)
	require.False(t, found)
	e, found, err := closed.at(0, "ride", local)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, `"r1"`, string(e.Value))
	_, _, err = closed.at(0, "charge", outside)
	require.ErrorIs(t, err, ErrDiverged)
	_, _, err = closed.at(1, "charge", local)
	require.ErrorIs(t, err, ErrDiverged)

	_, err = parseJournal([]byte("{"))
	require.Error(t, err)
}

// What a step may answer must fit in beside what the steps before it have
// answered: this is found out before it is done.
func TestJournalHasRoomForTheNextStep(t *testing.T) {
	t.Parallel()
	value := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	full := journal{{Name: strings.Repeat("\x00", maxStepName), Kind: outside, Value: value(8 << 20)}}
	left := full.room()
	require.Positive(t, left)
	text, err := full.with(1, entry{Name: strings.Repeat("\x00", maxStepName), Kind: outside, Value: value(left)}).encode()
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxJournal)

	for _, c := range []struct {
		maxBody int
		want    error
	}{{left, nil}, {left + 1, ErrTooLarge}} {
		run := &Run{store: &Store{cfg: Config{MaxBody: c.maxBody}}, rec: &record{steps: full}, next: 1}
		_, found, err := run.enter("charge", outside)
		require.ErrorIs(t, err, c.want)
		require.False(t, found)
	}
}
