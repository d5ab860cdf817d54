package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// need is what a scenario needs of a kind of queue.
type need string

const (
	undone     need = "effects that are undone with their transaction"
	googles    need = "handlers and calls of Google's client"
	frontFault need = "faults that a front makes"
	release    need = "the giving back of a lease"
	letters    need = "a table of dead letters"
)

// able finds out of a house whether its kind has what a scenario needs. Nothing is declared: a kind that learns something
// new makes its documented skip fail.
var able = map[need]func(*house, *queue.Queue) bool{
	undone:     func(_ *house, q *queue.Queue) bool { return q.Backend().Client() != nil },
	googles:    func(h *house, _ *queue.Queue) bool { return h.effect != nil },
	frontFault: func(h *house, _ *queue.Queue) bool { return h.faults != nil },
	release: func(_ *house, q *queue.Queue) bool {
		_, ok := q.Backend().(backend.Releaser)
		return ok
	},
	letters: func(h *house, q *queue.Queue) bool {
		_, err := q.DeadLetters().List(h.t.Context(), queue.DeadLetterFilter{}, nil, 1)
		return err == nil
	},
}

// documented is the list of what a kind of queue cannot show, and why. The suite fails where it and the kinds differ.
var documented = map[string]map[need]string{
	"native": {
		release: "a lease of the service ends by itself and in no other way",
	},
	"native by sql.DB": {
		release: "a lease of the service ends by itself and in no other way",
		googles: "the driver has handlers of single messages only; the queue's own calls are those of the kind native",
	},
	"table by sql.DB": {
		googles: "the driver has handlers of single messages only; the queue's own calls are those of the kind table",
	},
	"table on the bare emulator": {
		frontFault: "there is no front before it",
	},
	"memory": {
		undone:     "there is no Spanner transaction in memory: what a handler did is not undone",
		frontFault: "there is no front before it; queuetest has faults of its own, and lease tests with them",
		release:    "it stands for a queue of the service, whose leases end by themselves",
		letters:    "it keeps what is dead in a list of its own",
	},
	"service, native": {
		frontFault: "there is no front before it",
		release:    "a lease of the service ends by itself and in no other way",
	},
	"service, table": {
		frontFault: "there is no front before it",
	},
}

// abilities finds out what a kind has.
func abilities(t *testing.T, k kind) map[need]bool {
	t.Helper()
	h := k.make(t, long)
	q := h.open()
	has := make(map[need]bool)
	for n, can := range able {
		has[n] = can(h, q)
	}
	return has
}

// differences says where what a kind lacks, and so skips, and what is documented for it differ.
func differences(has map[need]bool, reasons map[need]string) []string {
	var all []string
	for n := range able {
		switch reason := reasons[n]; {
		case !has[n] && reason == "":
			all = append(all, fmt.Sprintf("skipped and not documented: what needs %s", n))
		case has[n] && reason != "":
			all = append(all, fmt.Sprintf("documented as skipped, but it could run: what needs %s", n))
		}
	}
	for n := range reasons {
		if able[n] == nil {
			all = append(all, fmt.Sprintf("documented as skipped, but there is no such need: %s", n))
		}
	}
	slices.Sort(all)
	return all
}

// The comparison of the two lists fails, each way.
func TestDifferencesOfSkips(t *testing.T) {
	t.Parallel()
	has := map[need]bool{undone: true, googles: true, frontFault: true, release: true}
	require.Empty(t, differences(has, map[need]string{letters: "why"}))
	require.Equal(t, []string{"skipped and not documented: what needs " + string(letters)}, differences(has, nil))
	require.Equal(t, []string{
		"documented as skipped, but it could run: what needs " + string(undone),
		"documented as skipped, but there is no such need: wings",
	}, differences(has, map[need]string{letters: "why", undone: "why", "wings": "why"}))
}

// Every need is some scenario's, every documented kind is one that is run, and nothing is skipped by all.
func TestSkipsAreOfUse(t *testing.T) {
	t.Parallel()
	needed := make(map[need]bool)
	for _, s := range scenarios {
		for _, n := range s.needs {
			require.Contains(t, able, n, s.name)
			needed[n] = true
		}
	}
	for n := range able {
		require.True(t, needed[n], "no scenario needs %s", n)
	}
	known := map[string]bool{"service, native": true, "service, table": true}
	for _, k := range kinds() {
		known[k.name] = true
	}
	for name := range documented {
		require.True(t, known[name], "there is no kind %s", name)
	}
}
