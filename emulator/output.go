package emulator

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

const (
	keptLines   = 20
	longestLine = 4096
)

// serverAddress is how the emulator says where it listens. It is the only way to learn the port: two emulators that are
// told one port both start and share it at random, so the port is left to the system.
var serverAddress = regexp.MustCompile(`Server address: (\S+)`)

// output takes what the child prints: it finds the address in it and keeps the last lines for error texts.
type output struct {
	address chan string // one slot; gets the first address
	log     *slog.Logger

	mu    sync.Mutex
	line  []byte   // the line that has no end yet
	lines []string // the last complete ones
	seen  bool     // an address was found
}

func newOutput(log *slog.Logger) *output {
	return &output{address: make(chan string, 1), log: log}
}

// Write implements io.Writer. It never fails, so that the child never blocks on its own log.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := longestLine - len(o.line); len(part) > room {
			part = part[:room]
		}
		o.line = append(o.line, part...)
		if ended {
			o.addLocked(strings.TrimRight(string(o.line), "\r"))
			o.line = o.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

func (o *output) addLocked(line string) {
	o.log.LogAttrs(context.Background(), slog.LevelDebug, "emulator", slog.String("line", line))
	o.lines = append(o.lines, line)
	if len(o.lines) > keptLines {
		o.lines = o.lines[1:]
	}
	if m := serverAddress.FindStringSubmatch(line); m != nil && !o.seen {
		o.seen = true
		o.address <- m[1]
	}
}

// tail returns the last lines, each indented on a line of its own, or says that there are none.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines
	if len(o.line) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(o.line))
	}
	if len(lines) == 0 {
		return "it printed nothing"
	}
	return "its last lines:\n  " + strings.Join(lines, "\n  ")
}
