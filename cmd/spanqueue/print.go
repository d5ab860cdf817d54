package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spanqueue/spanqueue/queue"
)

// letterJSON is a dead letter for programs. Payload is base64, and only there where one letter was asked for.
type letterJSON struct {
	Letter      string          `json:"letter"`
	Key         json.RawMessage `json:"key"`
	DeadAt      string          `json:"deadAt"`
	DeliverTime string          `json:"deliverTime"`
	Reason      string          `json:"reason"`
	Error       string          `json:"error,omitempty"`
	Attempts    int             `json:"attempts"`
	FirstAt     string          `json:"firstAt,omitempty"`
	LastAt      string          `json:"lastAt,omitempty"`
	Handler     string          `json:"handler,omitempty"`
	Priority    int             `json:"priority,omitempty"`
	Payload     []byte          `json:"payload,omitempty"`
}

func letterObject(l *queue.DeadLetter) letterJSON {
	return letterJSON{
		Letter: formatLetter(l.Key, l.DeadAt), Key: json.RawMessage(formatKey(l.Key)), DeadAt: formatTime(l.DeadAt),
		DeliverTime: formatTime(l.DeliverTime), Reason: l.Reason, Error: l.Error, Attempts: l.Attempts,
		FirstAt: formatTime(l.FirstAt), LastAt: formatTime(l.LastAt), Handler: l.Handler, Priority: l.Priority, Payload: l.Payload,
	}
}

// printJSON writes one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// formatTime writes a time; the zero time is empty.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// oneLine makes a text fit into a line of a table.
func oneLine(text string, widest int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= widest {
		return text
	}
	return string([]rune(text)[:widest-1]) + "…"
}

// readable says whether a payload can be shown as it is.
func readable(payload []byte) bool {
	if !utf8.Valid(payload) {
		return false
	}
	return strings.IndexFunc(string(payload), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) < 0
}

// preview shows the beginning of a payload in a line of a table.
func preview(payload []byte, widest int) string {
	if readable(payload) {
		return oneLine(string(payload), widest)
	}
	shown := payload[:min(len(payload), widest/2)]
	if len(shown) < len(payload) {
		return fmt.Sprintf("%x…", shown)
	}
	return fmt.Sprintf("%x", shown)
}
