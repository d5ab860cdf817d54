//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

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

func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	ddl := append(schema.DeadLetters{Queue: orders}.Statements(), orders.DDL())
	ddl = append(ddl, schema.Attempts{Queue: orders}.Statements()...)
	ddl = append(ddl, more...)
	w := &world{t: t, db: emulatortest.Database(t, ddl...)}
	var err error
	w.queue, err = queue.New(w.db.Client(t), orders)
	require.NoError(t, err)
	return w
}

// run runs the command line on the world's database.
func (w *world) run(args ...string) (out, errs string, err error) {
	w.t.Helper()
	root := newRootWith(func(_ context.Context, database, role string) (*spanner.Client, error) {
		require.Equal(w.t, w.db.Name, database)
		return w.db.ClientWithConfig(w.t, spanner.ClientConfig{DatabaseRole: role, DisableNativeMetrics: true}), nil
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

func TestStatsPeekPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "ready    0\ndelayed  0\noldest   0s\n", w.ok("stats"))
	at := time.Date(9000, 1, 1, 0, 0, 0, 123456789, time.UTC)
	w.send(queue.Outgoing{Key: spanner.Key{"a", 1}, Payload: []byte("two\napples")},
		queue.Outgoing{Key: spanner.Key{"b", nil}, Payload: []byte{0, 255}, DeliverTime: at})
	require.Regexp(t, `^ready    1\ndelayed  1\noldest   \d.*s\n$`, w.ok("stats"))
	require.Regexp(t, `^{"ready":1,"delayed":1,"oldestAgeSeconds":\d[\de.-]*}\n$`, w.ok("stats", "--json"))
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
		"--connect-timeout is 0s":                   {"stats", "--connect-timeout", "0s"},
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

// A command works with the role it is told, and can do what that may do.
func TestRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "CREATE ROLE looker", "GRANT SELECT ON QUEUE orders TO ROLE looker")
	key := spanner.Key{"alice", 7}
	w.send(queue.Outgoing{Key: key, Payload: []byte("p")})
	require.Regexp(t, `ready +1\n`, w.ok("stats", "--role", "looker"))
	_, _, err := w.run("purge", "--yes", "--role", "looker")
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err), "%v", err)
	_, _, err = w.run("stats", "--role", "nobody")
	require.ErrorContains(t, err, "nobody")
}
