//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

var orders = schema.Queue{
	Name: "Orders",
	KeyColumns: []schema.Column{
		{Name: "Customer", Type: schema.String(40)},
		{Name: "Num", Type: schema.Int64()},
	},
	Payload: schema.Bytes(schema.Max),
}

// world is a queue with dead letters, and a command line that works on it.
type world struct {
	t     *testing.T
	db    *emulatortest.DB
	queue *queue.Queue
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ddl := append(schema.DeadLetters{Queue: orders}.Statements(), orders.DDL())
	ddl = append(ddl, schema.Attempts{Queue: orders}.Statements()...)
	w := &world{t: t, db: emulatortest.Database(t, ddl...)}
	var err error
	w.queue, err = queue.New(w.db.Client(t), orders)
	require.NoError(t, err)
	return w
}

// run runs the command line on the world's database.
func (w *world) run(args ...string) (out, errs string, err error) {
	w.t.Helper()
	root := newRootWith(func(ctx context.Context, database, name string) (*queue.Queue, func(), error) {
		require.Equal(w.t, w.db.Name, database)
		q, err := queue.Open(ctx, w.queue.Backend().Client(), name)
		return q, func() {}, err
	})
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(append(args, "--database", w.db.Name, "--queue", "orders"))
	err = root.ExecuteContext(w.t.Context())
	return stdout.String(), stderr.String(), err
}

// ok runs a command that must succeed and returns what it printed for programs.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	out, _, err := w.run(args...)
	require.NoError(w.t, err)
	return out
}

func (w *world) send(messages ...queue.Outgoing) {
	w.t.Helper()
	require.NoError(w.t, w.queue.Send(w.t.Context(), messages))
}

// bury sends a message, gives it up, and returns the letter's name.
func (w *world) bury(key spanner.Key, payload, reason, text string) string {
	w.t.Helper()
	w.send(queue.Outgoing{Key: key, Payload: []byte(payload), DeliverTime: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)})
	peeked, err := w.queue.Peek(w.t.Context(), 100)
	require.NoError(w.t, err)
	d := peeked[len(peeked)-1].Delivery() // the only one that is due so late
	err = w.queue.Backend().RunTx(w.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, d); err != nil {
			return err
		}
		return tx.(backend.LedgerTx).Bury(ctx, d, backend.DeadLetter{Reason: reason, Error: text, Attempts: 3, Handler: "mailer"})
	})
	require.NoError(w.t, err)
	letters, err := w.queue.DeadLetters().List(w.t.Context(), queue.DeadLetterFilter{Key: d.Key}, nil, 100)
	require.NoError(w.t, err)
	last := letters[len(letters)-1]
	return formatLetter(last.Key, last.DeadAt)
}

func (w *world) ready() int64 {
	w.t.Helper()
	s, err := w.queue.Stats(w.t.Context())
	require.NoError(w.t, err)
	return s.Ready
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

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
		`error +no luck\n`, `payload +11 bytes\n\ntwo apples\n`, `first attempt +20`, `last attempt +20`,
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

func TestStatsPeekPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "ready    0\ndelayed  0\noldest   0s\n", w.ok("stats"))
	at := time.Date(9000, 1, 1, 0, 0, 0, 123456789, time.UTC)
	w.send(queue.Outgoing{Key: spanner.Key{"a", 1}, Payload: []byte("two\napples")},
		queue.Outgoing{Key: spanner.Key{"b", nil}, Payload: []byte{0, 255}, DeliverTime: at})
	require.Regexp(t, `^ready    1\ndelayed  1\noldest   \d.*s\n$`, w.ok("stats"))
	table := lines(w.ok("peek"))
	require.Len(t, table, 3)
	require.Regexp(t, `^\["a",1\] +20\S+Z +10 +two apples$`, table[1])
	require.Regexp(t, `^\["b",null\] +9000-01-01T00:00:00.123456789Z +2 +00ff$`, table[2])
	require.Len(t, lines(w.ok("peek", "-n", "1")), 2)
	var object struct {
		Key     []any
		Payload []byte
	}
	require.NoError(t, json.Unmarshal([]byte(w.ok("peek", "-n", "1", "--json")), &object))
	require.Equal(t, []any{"a", 1.0}, object.Key)
	require.Equal(t, "two\napples", string(object.Payload))

	_, _, err := w.run("purge")
	require.ErrorContains(t, err, "--yes")
	require.Len(t, lines(w.ok("peek")), 3)
	require.Equal(t, "purged 2\n", w.ok("purge", "--yes"))
	require.Equal(t, "ready    0\ndelayed  0\noldest   0s\n", w.ok("stats"))
}

func TestMistakesAboutQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for says, args := range map[string][]string{
		"name the letters, or say --all":            {"deadletters", "redrive"},
		"not both":                                  {"deadletters", "redrive", "x", "--all"},
		"filters and --rate are for --all":          {"deadletters", "discard", `["a",1]`, "--reason", "handler"},
		"accepts 1 arg(s), received 0":              {"deadletters", "show"},
		"--json and --payload exclude each other":   {"deadletters", "show", "x", "--json", "--payload"},
		`key "alice" is not a JSON array`:           {"deadletters", "show", "alice"},
		"has 1 parts, the key of Orders has 2":      {"deadletters", "redrive", `["alice"]`},
		"column Num is INT64":                       {"deadletters", "discard", `["alice","x"]`},
		"none has the key":                          {"deadletters", "show", `["nobody",1]`},
		"--limit is 0":                              {"deadletters", "list", "--limit", "0"},
		`--since is "yesterday"; it must be a time`: {"deadletters", "list", "--since", "yesterday"},
		`--until is "-1h"`:                          {"deadletters", "list", "--until", "-1h"},
		"--key: key ":                               {"deadletters", "list", "--key", "7"},
		"--after: ":                                 {"deadletters", "list", "--after", "7"},
		"-n is 0":                                   {"peek", "-n", "0"},
		"Rate is -1":                                {"deadletters", "redrive", "--all", "--rate", "-1"},
	} {
		_, _, err := w.run(args...)
		require.ErrorContains(t, err, says, "%v", args)
	}
}

// The program itself: it finds the emulator by the variable that Google's clients read.
func TestProgramOpensTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(queue.Outgoing{Key: spanner.Key{"a", 1}})
	run := func(args ...string) result {
		cmd := program([]string{"SPANNER_EMULATOR_HOST=" + w.db.Endpoint()}, args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the code says it
		return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	r := run("stats", "--database", w.db.Name, "--queue", "Orders")
	require.Zero(t, r.code, r.errors)
	require.Contains(t, r.out, "ready    1\n")
	for says, args := range map[string][]string{
		"no queue or table of that name":                                   {"stats", "--database", w.db.Name, "--queue", "Nothing"},
		`--database is "d"; it must be projects/P/instances/I/databases/D`: {"stats", "--database", "d", "--queue", "Orders"},
		`required flag(s) "queue" not set`:                                 {"peek", "--database", w.db.Name},
		"projects/p/instances/nowhere":                                     {"stats", "--database", "projects/p/instances/nowhere/databases/d", "--queue", "Orders"},
	} {
		r := run(args...)
		require.Equal(t, 1, r.code)
		require.Empty(t, r.out)
		require.Contains(t, r.errors, says)
	}
}

func TestKeysAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	id := uuid.MustParse("5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11")
	for _, c := range []struct {
		columnType schema.Type
		part       any
		text       string
	}{
		{schema.String(40), `a"b@<c>`, `["a\"b@<c>"]`},
		{schema.Int64(), int64(-1 << 63), `[-9223372036854775808]`},
		{schema.Bytes(40), []byte{0, 255}, `["AP8="]`},
		{schema.Bytes(40), []byte(nil), `[null]`},
		{schema.Int64(), spanner.NullInt64{}, `[null]`},
		{schema.Bool(), true, `[true]`},
		{schema.Timestamp(), at, `["2026-01-02T03:04:05.000000678Z"]`},
		{schema.Date(), civil.Date{Year: 2026, Month: 2, Day: 3}, `["2026-02-03"]`},
		{schema.UUID(), id, `["5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11"]`},
		{schema.Numeric(), *big.NewRat(5, 2), `["2.500000000"]`},
	} {
		q := schema.Queue{Name: "Q", KeyColumns: []schema.Column{{Name: "Id", Type: c.columnType}}}
		require.Equal(t, c.text, formatKey(spanner.Key{c.part}))
		key, err := parseKey(q, c.text)
		require.NoError(t, err)
		switch want := c.part.(type) {
		case big.Rat:
			require.Zero(t, want.Cmp(key[0].(*big.Rat)))
		case spanner.NullableValue:
			require.Nil(t, key[0])
		case []byte:
			if want == nil {
				require.Nil(t, key[0])
			} else {
				require.Equal(t, want, key[0])
			}
		default:
			require.Equal(t, want, key[0])
		}
		_, _, err = parseLetter(q, c.text+"@"+formatTime(at))
		require.NoError(t, err)
	}
	// A key of one column needs no array, whatever is in it.
	q := schema.Queue{Name: "Q", KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(40)}}}
	for _, text := range []string{"m1", "alice@example.com", "null", "5", ""} {
		key, deadAt, err := parseLetter(q, text)
		require.NoError(t, err)
		require.Equal(t, spanner.Key{text}, key)
		require.Zero(t, deadAt)
		key, deadAt, err = parseLetter(q, fmt.Sprintf("%s@%s", text, formatTime(at)))
		require.NoError(t, err)
		require.Equal(t, spanner.Key{text}, key)
		require.Equal(t, at, deadAt)
	}
	for _, text := range []string{`["a"]]`, `["a"] x`, `[1]`, `["a","b"]`, `[[]]`} {
		_, err := parseKey(q, text)
		require.Error(t, err, text)
	}
}
