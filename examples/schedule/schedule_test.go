package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	// The program starts itself as a worker; here that is the test binary.
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		main()
		return
	}
	emulatortest.Main(m)
}

func TestEverySlotRunsOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"-lease", "1s"}, strings.NewReader(""), &out)
	t.Log(out.String())
	require.NoError(t, err)
	require.Contains(t, out.String(), "is killed with SIGKILL in the middle of a run")
	require.Regexp(t, `did not answer [1-9]\d* commits`, out.String())
	require.Regexp(t, `\d+ runs, [1-9]\d* slots skipped`, out.String(), "nobody was there for three seconds")
}

// Whatever is wrong must be seen.
func TestJudge(t *testing.T) {
	t.Parallel()
	slot := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	once := []ranRow{{"worker 1", 0}}
	good := func() history { // ran at 1, skipped 2 and 3, ran at 4
		return history{
			name: "snapshot", schedule: schedule{Spec: "* * * * * *"}, first: slot(1), end: slot(5),
			ran:     map[time.Time][]ranRow{slot(1): once, slot(4): once},
			skipped: []skippedRow{{slot(1), slot(4)}},
		}
	}
	require.NoError(t, judge([]history{good()}))
	for _, tt := range []struct {
		name, want string
		spoil      func(*history)
	}{
		{"a run is missing", "00:00:04: ran 0 times, skipped 0 times", func(h *history) { delete(h.ran, slot(4)) }},
		{"a run comes twice", "00:00:04: ran 2 times", func(h *history) { h.ran[slot(4)] = append(once, once...) }},
		{"run and skipped", "00:00:02: ran 1 times, skipped 1 times", func(h *history) { h.ran[slot(2)] = once }},
		{"skipped twice", "00:00:03: ran 0 times, skipped 2 times", func(h *history) { h.skipped = append(h.skipped, h.skipped...) }},
		{"skipped and to be caught up", "00:00:02: ran 0 times, skipped 1 times", func(h *history) { h.CatchUp = true }},
		{"between the slots", "is no slot of the schedule", func(h *history) { h.ran[slot(1).Add(time.Millisecond)] = once }},
		{"no slot", "there was no slot", func(h *history) { *h = history{name: h.name, schedule: h.schedule, first: slot(1), end: slot(1)} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := good()
			tt.spoil(&h)
			require.ErrorContains(t, judge([]history{h}), tt.want)
		})
	}
}

func TestASpecThatNeverComes(t *testing.T) {
	t.Parallel()
	_, err := next("0 0 0 30 2 *", time.Now())
	require.ErrorContains(t, err, "there is no such time")
	_, err = next("every now and then", time.Now())
	require.ErrorContains(t, err, `schedule "every now and then"`)
}
