//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/queue"
)

func TestDeadLettersList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, []string{"LETTER  ATTEMPTS  REASON  HANDLER  ERROR"}, lines(w.ok("deadletters", "list")))
	a := w.bury(spanner.Key{"alice", 7}, "x", "attempts", "HTTP 503:\n  "+strings.Repeat("long ", 50))
	b := w.bury(spanner.Key{nil, nil}, "y", "handler", "")
	require.Regexp(t, `^\["alice",7\]@20.*Z$`, a)
	require.Regexp(t, `^\[null,null\]@20.*Z$`, b)

	out, errs, err := w.run("deadletters", "list")
	require.NoError(t, err)
	require.Empty(t, errs, "all of them were shown")
	table := lines(out)
	require.Len(t, table, 3)
	require.Regexp(t, `^LETTER +ATTEMPTS +REASON +HANDLER +ERROR$`, table[0])
	require.Regexp(t, `3 +attempts +mailer +HTTP 503: long long .*…$`, table[1])
	require.True(t, strings.HasPrefix(table[1], a+" "), table[1])
	require.True(t, strings.HasPrefix(table[2], b+" "), table[2])

	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.ok("deadletters", "list", "--json", "--reason", "attempts")), &object))
	require.Equal(t, a, object["letter"])
	require.Equal(t, []any{"alice", 7.0}, object["key"])
	require.Contains(t, object["error"], "\n", "nothing is cut for programs")

	out, errs, err = w.run("deadletters", "list", "--limit", "1")
	require.NoError(t, err)
	require.Len(t, lines(out), 2)
	require.Equal(t, "There may be more: --after '"+a+"'\n", errs)
	require.Contains(t, w.ok("deadletters", "list", "--limit", "5", "--after", a), b)
	require.NotContains(t, w.ok("deadletters", "list", "--after", a), a)
}

func TestDeadLettersListFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.bury(spanner.Key{"a", 1}, "", "attempts", "HTTP 503")
	b := w.bury(spanner.Key{"b", 1}, "", "handler", "HTTP 404")
	_, deadAt, err := parseLetter(orders, b)
	require.NoError(t, err)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{a, b}},
		{[]string{"--key", `["a",1]`}, []string{a}},
		{[]string{"--reason", "handler"}, []string{b}},
		{[]string{"--handler", "nobody"}, nil},
		{[]string{"--error", "503"}, []string{a}},
		{[]string{"--since", "1h"}, []string{a, b}},
		{[]string{"--until", "1h"}, nil},
		{[]string{"--since", formatTime(deadAt)}, []string{b}},
		{[]string{"--until", formatTime(deadAt)}, []string{a}},
	} {
		var letters []string
		for _, line := range lines(w.ok(append([]string{"deadletters", "list"}, c.args...)...))[1:] {
			letters = append(letters, strings.Fields(line)[0])
		}
		require.Equal(t, c.want, letters, "%v", c.args)
	}
}

func TestDeadLettersShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := w.bury(spanner.Key{"alice", 7}, "two apples\n", "attempts", "no luck")
	bytes := w.bury(spanner.Key{"bob", 7}, "\x00\xffab", "attempts", "no luck")

	out := w.ok("deadletters", "show", `["alice",7]`)
	require.Equal(t, out, w.ok("deadletters", "show", text))
	for _, want := range []string{
		`letter +\["alice",7\]@20`, `deliver time +9000-01-01T00:00:00Z`, `attempts +3\n`, `handler +mailer\n`, `reason +attempts\n`,
		`error +no luck\n`, `payload +11 bytes\n\ntwo apples\n`, `priority +0\n`, `first attempt +20`, `last attempt +20`,
	} {
		require.Regexp(t, want, out)
	}
	require.Regexp(t, `payload +4 bytes\n\n00000000  00 ff 61 62 +\|\.\.ab\|`, w.ok("deadletters", "show", bytes))
	require.Equal(t, "\x00\xffab", w.ok("deadletters", "show", bytes, "--payload"))
	var object struct{ Payload []byte }
	require.NoError(t, json.Unmarshal([]byte(w.ok("deadletters", "show", bytes, "--json")), &object))
	require.Equal(t, "\x00\xffab", string(object.Payload))

	second := w.bury(spanner.Key{"alice", 7}, "again", "attempts", "no luck")
	_, _, err := w.run("deadletters", "show", `["alice",7]`)
	require.ErrorContains(t, err, "died more than once")
	require.ErrorContains(t, err, text)
	require.ErrorContains(t, err, second)
	require.Contains(t, w.ok("deadletters", "show", second), "again")
}

func TestDeadLettersRedrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.bury(spanner.Key{"alice", 7}, "x", "attempts", "")
	b := w.bury(spanner.Key{"bob", 7}, "y", "attempts", "")
	require.Equal(t, "redriven "+a+"\nredriven "+b+"\n", w.ok("deadletters", "redrive", `["alice",7]`, b))
	require.EqualValues(t, 2, w.ready())
	require.Len(t, lines(w.ok("deadletters", "list")), 1)

	out, _, err := w.run("deadletters", "redrive", a)
	require.ErrorIs(t, err, queue.ErrNoDeadLetter)
	require.Empty(t, out)

	// One that cannot be redriven does not hinder the others.
	a = w.bury(spanner.Key{"carol", 7}, "z", "attempts", "")
	w.send(queue.Outgoing{Key: spanner.Key{"dora", 7}})
	_, err = w.queue.Purge(t.Context())
	require.NoError(t, err)
	taken := w.bury(spanner.Key{"dora", 7}, "z", "attempts", "")
	w.send(queue.Outgoing{Key: spanner.Key{"dora", 7}})
	out, _, err = w.run("deadletters", "redrive", taken, a)
	require.ErrorIs(t, err, queue.ErrExists)
	require.Equal(t, "redriven "+a+"\n", out)
	require.Contains(t, w.ok("deadletters", "list"), taken)
}

func TestDeadLettersRedriveAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.bury(spanner.Key{"a", 1}, "", "attempts", "HTTP 503")
	b := w.bury(spanner.Key{"b", 1}, "", "attempts", "HTTP 503")
	c := w.bury(spanner.Key{"c", 1}, "", "attempts", "HTTP 404")
	w.send(queue.Outgoing{Key: spanner.Key{"b", 1}})
	out, errs, err := w.run("deadletters", "redrive", "--all", "--error", "503", "--rate", "100")
	require.ErrorContains(t, err, "not all were redriven: 1 kept")
	require.Equal(t, "redriven "+a+"\n", out)
	require.Equal(t, "kept "+b+": its key is in the queue\n1 redriven, 1 kept, 0 gone\n", errs)
	require.EqualValues(t, 2, w.ready())
	_, err = w.queue.Purge(t.Context())
	require.NoError(t, err)

	out, errs, err = w.run("deadletters", "redrive", "--all")
	require.NoError(t, err)
	require.Equal(t, "redriven "+b+"\nredriven "+c+"\n", out)
	require.Equal(t, "2 redriven, 0 kept, 0 gone\n", errs)
}

// A letter that is older than the operation records is redriven only by force.
func TestDeadLettersRedriveOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.bury(spanner.Key{"a", 1}, "", "attempts", "")
	_, _, err := w.run("deadletters", "redrive", "--retention", "1ns", a)
	require.ErrorContains(t, err, "older than --retention, 1ns")
	require.ErrorContains(t, err, "--force")
	out, errs, err := w.run("deadletters", "redrive", "--retention", "1ns", "--all")
	require.NoError(t, err)
	require.Empty(t, out)
	require.Contains(t, errs, "are left alone")
	require.Zero(t, w.ready())
	_, _, err = w.run("deadletters", "redrive", "--retention", "-1s", a)
	require.ErrorContains(t, err, "--retention is -1s")
	require.Equal(t, "redriven "+a+"\n", w.ok("deadletters", "redrive", "--retention", "1ns", "--force", a))
	b := w.bury(spanner.Key{"b", 1}, "", "attempts", "")
	require.Equal(t, "redriven "+b+"\n", w.ok("deadletters", "redrive", "--retention", "0s", b))
}

func TestDeadLettersDiscard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.bury(spanner.Key{"a", 1}, "", "attempts", "")
	b := w.bury(spanner.Key{"b", 1}, "", "handler", "")
	c := w.bury(spanner.Key{"c", 1}, "", "handler", "")
	require.Equal(t, "discarded "+a+"\n", w.ok("deadletters", "discard", a))
	_, _, err := w.run("deadletters", "discard", "--all", "--reason", "handler")
	require.ErrorContains(t, err, "--yes")
	require.Len(t, lines(w.ok("deadletters", "list")), 3)
	require.Equal(t, "discarded "+b+"\ndiscarded "+c+"\n", w.ok("deadletters", "discard", "--all", "--reason", "handler", "--yes"))
	require.Len(t, lines(w.ok("deadletters", "list")), 1)
	require.Zero(t, w.ready())
}
