package front_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// documented is the table of doc.go: state, then RPC, to code.
func documented(t *testing.T) (order []string, answers map[string]map[string]string) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	gap := regexp.MustCompile(`  +`)
	answers = make(map[string]map[string]string)
	var columns []string
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		cells := gap.Split(strings.TrimSpace(line), -1)
		if columns == nil {
			columns = cells
			continue
		}
		require.Len(t, cells, len(columns), line)
		of := make(map[string]string)
		for i, c := range cells[1:] {
			of[columns[i+1]] = c
		}
		answers[cells[0]] = of
		order = append(order, cells[0])
	}
	require.Equal(t, []string{"state", "statement", "Commit", "Rollback"}, columns)
	require.Len(t, order, 10)
	return order, answers
}

var statements = map[string]func(ctx context.Context, r *raw, tx []byte) error{
	"ExecuteSql": func(ctx context.Context, r *raw, tx []byte) error {
		_, err := r.sql(ctx, byID(tx), "SELECT Id FROM T")
		return err
	},
	"ExecuteStreamingSql": func(ctx context.Context, r *raw, tx []byte) error {
		_, err := all(r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: byID(tx), Sql: "SELECT Id FROM T"}))
		return err
	},
	"Read": func(ctx context.Context, r *raw, tx []byte) error {
		_, err := r.Read(ctx, readAll(r, byID(tx)))
		return err
	},
	"StreamingRead": func(ctx context.Context, r *raw, tx []byte) error {
		_, err := all(r.StreamingRead(ctx, readAll(r, byID(tx))))
		return err
	},
	"ExecuteBatchDml": func(ctx context.Context, r *raw, tx []byte) error {
		_, err := r.batch(ctx, byID(tx), "DELETE FROM T WHERE FALSE")
		return err
	},
}

func readAll(r *raw, sel *spannerpb.TransactionSelector) *spannerpb.ReadRequest {
	return &spannerpb.ReadRequest{Session: r.session, Transaction: sel, Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}}
}

// situation brings a new transaction into a state. The RPC under test is sent, and if it waits, release lets it go on.
type situation struct {
	client  *raw
	tx      []byte
	waits   func() bool // tells that the RPC waits; nil if it need not
	release func()
}

// The table of the package's documentation, cell by cell.
func TestAnswersInEachState(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	// Two fronts, one before the other: a Commit that the inner one holds is under way for the outer one.
	inner, innerAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	outer, outerAddr := newFront(t, innerAddr, front.Options{})
	other, otherAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	_ = other
	client := newRaw(t, outerAddr, db.Name)
	_, err := client.apply(client.ctx(), insert("exists"))
	require.NoError(t, err)

	active := func(t *testing.T) []byte {
		tx := client.begin(readWrite)
		_, err := client.sql(client.ctx(), byID(tx), "SELECT Id FROM T")
		require.NoError(t, err)
		return tx
	}
	situations := map[string]func(t *testing.T) situation{
		"begun": func(t *testing.T) situation { return situation{client: client, tx: client.begin(readWrite)} },
		"waiting": func(t *testing.T) situation {
			owner := active(t)
			return situation{client: client, tx: client.begin(readWrite),
				waits:   func() bool { return outer.Stats().Waiting == 1 },
				release: func() { require.NoError(t, client.rollback(client.ctx(), owner)) }}
		},
		"active": func(t *testing.T) situation { return situation{client: client, tx: active(t)} },
		"committing": func(t *testing.T) situation {
			tx := active(t)
			h := inner.Faults().Add(fault.Rule{Method: "Commit", Do: fault.Hold()})
			first := make(chan error, 1)
			go func() {
				_, err := client.commit(client.ctx(), tx)
				first <- err
			}()
			require.NoError(t, h.Wait(client.ctx()))
			return situation{client: client, tx: tx, release: func() {
				h.Remove()
				require.NoError(t, <-first)
			}}
		},
		"committed": func(t *testing.T) situation {
			tx := active(t)
			_, err := client.commit(client.ctx(), tx)
			require.NoError(t, err)
			return situation{client: client, tx: tx}
		},
		"failed": func(t *testing.T) situation {
			tx := active(t)
			_, err := client.commit(client.ctx(), tx, insert("exists"))
			requireCode(t, codes.AlreadyExists, err)
			return situation{client: client, tx: tx}
		},
		"aborted": func(t *testing.T) situation {
			tx := active(t)
			h := outer.Faults().Add(fault.Rule{Method: "ExecuteSql", Nth: 1, Do: fault.Abort()})
			defer h.Remove()
			_, err := client.sql(client.ctx(), byID(tx), "SELECT 1")
			requireCode(t, codes.Aborted, err)
			return situation{client: client, tx: tx}
		},
		"rolled back": func(t *testing.T) situation {
			tx := active(t)
			require.NoError(t, client.rollback(client.ctx(), tx))
			return situation{client: client, tx: tx}
		},
		"unknown": func(t *testing.T) situation {
			return situation{client: newRaw(t, otherAddr, db.Name).on(client.session), tx: client.begin(readWrite)}
		},
		"foreign": func(t *testing.T) situation { return situation{client: client, tx: []byte("12")} },
	}

	order, answers := documented(t)
	for _, state := range order {
		rpcs := map[string]func(ctx context.Context, r *raw, tx []byte) error{
			"Commit": func(ctx context.Context, r *raw, tx []byte) error {
				_, err := r.commit(ctx, tx)
				return err
			},
			"Rollback": func(ctx context.Context, r *raw, tx []byte) error { return r.rollback(ctx, tx) },
		}
		for name, call := range statements {
			rpcs[name] = call
		}
		for name, call := range rpcs {
			t.Run(state+"/"+name, func(t *testing.T) {
				require.Contains(t, situations, state)
				s := situations[state](t)
				answer := make(chan error, 1)
				go func() { answer <- call(client.ctx(), s.client, s.tx) }()
				if s.waits != nil && name != "Rollback" {
					eventually(t, "the RPC does not wait", s.waits)
				}
				if s.release != nil {
					s.release()
				}
				column := name
				if _, is := statements[name]; is {
					column = "statement"
				}
				err := <-answer
				require.Equal(t, answers[state][column], codeName(err), "%v", err)
				if status.Code(err) == codes.Aborted {
					require.True(t, hasRetryInfo(err))
				}
				_ = client.rollback(client.ctx(), s.tx)
				client.requireFree()
			})
		}
	}
}

// codeName is a code as the service's documentation writes it.
func codeName(err error) string {
	name := status.Code(err).String()
	if name == "OK" {
		return name
	}
	return strings.ToUpper(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

// What a second Commit is answered is the very answer of the first.
func TestSecondCommitGetsTheSameTimestamp(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	tx := r.begin(readWrite)
	first, err := r.commit(r.ctx(), tx, insert("a"))
	require.NoError(t, err)
	for range 3 {
		again, err := r.commit(r.ctx(), tx, insert("a"))
		require.NoError(t, err)
		require.Equal(t, first.GetCommitTimestamp().AsTime(), again.GetCommitTimestamp().AsTime())
		r.requireFree() // the session of the emulator is used by others meanwhile
	}
	require.Equal(t, "1", r.count("Id = 'a'"))
}

func TestTransactionsOfAnotherSession(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	other := r.on(r.newSession(nil))
	rw, ro := r.begin(readWrite), r.begin(strong)
	for _, tx := range [][]byte{rw, ro} {
		_, err := other.sql(r.ctx(), byID(tx), "SELECT 1")
		requireCode(t, codes.NotFound, err)
		_, err = other.commit(r.ctx(), tx)
		requireCode(t, codes.NotFound, err)
	}
	_, err := r.commit(r.ctx(), rw, insert("a"))
	require.NoError(t, err)
}
