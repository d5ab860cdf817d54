package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A worker tells on its standard output what it is at, a line each. What it has written when it is killed is in the pipe
// and is read all the same, so that it is known afterwards what it was killed at:
//
//	ready            its processors run
//	enter T000017    a handler was started for the message
//	leave T000017    it has returned
//	came T000017     the message was received; it may wait for a handler
//	deferred T000017 a handler puts it off for callTimeout
//	commit           a Commit that acknowledges was sent
//	answered         and has been answered, in whatever way
//	figures {...}    the counts so far
//	failed TEXT      Run has returned with an error
const (
	eventReady    = "ready"
	eventEnter    = "enter"
	eventLeave    = "leave"
	eventCame     = "came"
	eventDeferred = "deferred"
	eventCommit   = "commit"
	eventAnswered = "answered"
	eventFigures  = "figures"
	eventFailed   = "failed"
)

// event is one line.
type event struct{ name, text string }

// parseEvent reads a line.
func parseEvent(line string) event {
	name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	return event{name, text}
}

// teller writes events. Each is written at once and whole.
type teller struct {
	mu  sync.Mutex
	out io.Writer
}

func (t *teller) tell(name, text string) {
	line := name + "\n"
	if text != "" {
		line = name + " " + strings.ReplaceAll(text, "\n", " ") + "\n"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, line) // fails only when nobody listens any more, and then this process is about to end
}

func (t *teller) figures(f figures) {
	text, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("figures that cannot be written: %v", err)) // numbers always can
	}
	t.tell(eventFigures, string(text))
}

// figures is what a worker has met with.
type figures struct {
	Received    int64            // deliveries, as often as they came
	Outcomes    map[string]int64 // of deliveries that have ended
	Aborts      int64            // transactions that ran again because the database had aborted them
	Unknown     int64            // commits that nobody got an answer for
	OwnFailures int64            // failures of the handlers' own
	RPCs        map[rpcKind]int64
}

// plus adds up.
func (f figures) plus(o figures) figures {
	sum := figures{
		Received:    f.Received + o.Received,
		Outcomes:    make(map[string]int64),
		Aborts:      f.Aborts + o.Aborts,
		Unknown:     f.Unknown + o.Unknown,
		OwnFailures: f.OwnFailures + o.OwnFailures,
		RPCs:        make(map[rpcKind]int64),
	}
	for _, one := range []figures{f, o} {
		for outcome, n := range one.Outcomes {
			sum.Outcomes[outcome] += n
		}
		for kind, n := range one.RPCs {
			sum.RPCs[kind] += n
		}
	}
	return sum
}

// rpcs adds up the RPCs of the given kinds.
func (f figures) rpcs(kinds ...rpcKind) int64 {
	sum := int64(0)
	for _, k := range kinds {
		sum += f.RPCs[k]
	}
	return sum
}
