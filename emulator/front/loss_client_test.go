//go:build unix

package front_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// lossModes are what a client is doing when it is killed. Each says "ready" when it is there; ready, if set, tells what
// the front sees of one that cannot say it.
var lossModes = map[string]struct {
	run    func(r *raw, ready func())
	rule   *fault.Rule                           // added before
	holder bool                                  // somebody else has the turn
	ready  func(s *front.Server) bool            // of a client that is inside an RPC
	left   string                                // rows of T afterwards
	after  func(t *testing.T, c *spanner.Client) // more to look at
}{
	"no transaction": {run: func(r *raw, ready func()) { ready() }, left: "0"},
	"begun":          {run: func(r *raw, ready func()) { r.begin(readWrite); ready() }, left: "0"},
	"waiting": {run: func(r *raw, _ func()) { _, _ = r.sql(context.Background(), begins(readWrite), insertSQL("a")) },
		holder: true, ready: func(s *front.Server) bool { return s.Stats().Waiting == 1 }, left: "1"},
	"active": {run: func(r *raw, ready func()) { r.hold("a"); ready() }, left: "0"},
	"active, streaming": {run: func(r *raw, ready func()) {
		parts, err := all(r.ExecuteStreamingSql(context.Background(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: insertSQL("a"), Seqno: 1}))
		if err == nil && len(parts) > 0 {
			ready()
		}
	}, left: "0"},
	"in a statement": {run: func(r *raw, _ func()) { _, _ = r.sql(context.Background(), begins(readWrite), insertSQL("a")) },
		rule: &fault.Rule{Method: "ExecuteSql", SQL: "'a'", Nth: 1, Do: fault.HoldReply()}, left: "0"},
	"before a commit": {run: func(r *raw, _ func()) { _, _ = r.commit(context.Background(), r.hold("a"), insert("b")) },
		rule: &fault.Rule{Method: "Commit", Nth: 1, Do: fault.Hold()}, left: "0"},
	"committing": {run: func(r *raw, _ func()) { _, _ = r.commit(context.Background(), r.hold("a"), insert("b")) },
		rule: &fault.Rule{Method: "Commit", Nth: 1, Do: fault.HoldReply()}, left: "2"},
	"committed": {run: func(r *raw, ready func()) {
		if _, err := r.commit(context.Background(), r.hold("a"), insert("b")); err == nil {
			ready()
		}
	}, left: "2"},
	"rolling back": {run: func(r *raw, _ func()) { _ = r.rollback(context.Background(), r.hold("a")) },
		rule: &fault.Rule{Method: "Rollback", Nth: 1, Do: fault.Hold()}, left: "0"},
	"single-use commit": {run: func(r *raw, _ func()) { _, _ = r.apply(context.Background(), insert("a")) },
		holder: true, ready: func(s *front.Server) bool { return s.Stats().Waiting == 1 }, left: "1"},
	"changing the schema": {run: func(r *raw, _ func()) {
		_, _ = r.admin().UpdateDatabaseDdl(context.Background(), &databasepb.UpdateDatabaseDdlRequest{Database: r.database, Statements: []string{"DROP QUEUE Tasks"}})
	}, holder: true, ready: func(s *front.Server) bool { return s.Stats().Waiting == 1 }, left: "1", after: func(t *testing.T, c *spanner.Client) {
		require.Equal(t, []int64{1}, values[int64](t, c, "SELECT Id FROM Tasks"))
	}},
	"partitioned DML": {run: func(r *raw, ready func()) { r.begin(partDML); ready() }, left: "0"},
	"read-only":       {run: func(r *raw, ready func()) { r.begin(strong); ready() }, left: "0"},
	"receiving": {run: func(r *raw, ready func()) {
		stream, err := r.ExecuteStreamingSql(context.Background(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')"})
		if err != nil {
			return
		}
		for {
			part, err := stream.Recv()
			if err != nil {
				return
			}
			if len(part.GetValues()) > 0 {
				ready()
			}
		}
	}, left: "0", after: func(t *testing.T, c *spanner.Client) {
		begin := time.Now()
		require.EqualValues(t, 1, receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')").next(t).ID)
		require.Less(t, time.Since(begin), 5*time.Second)
	}},
}

// F31 (d): a client that is killed, in whatever state, leaves nothing open, and takes nobody's place.
func TestClientsThatVanish(t *testing.T) {
	t.Parallel()
	for name, mode := range lossModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := emulatortest.Database(t, table, taskQueue)
			s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{ClosedBound: shortClosed, LeaseLength: time.Second})
			r := newRaw(t, addr, db.Name)
			c := clientAt(t, addr, db.Name)
			apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
			var h *fault.Handle
			if mode.rule != nil {
				h = s.Faults().Add(*mode.rule)
			}
			var holder []byte
			if mode.holder {
				holder = r.hold("holder")
			}
			kill := vanishing(t, name, addr, db.Name, mode.rule == nil && mode.ready == nil)
			switch {
			case h != nil:
				require.NoError(t, h.Wait(r.ctx()))
			case mode.ready != nil:
				eventually(t, "the client does not get so far", func() bool { return mode.ready(s) })
			}
			kill()
			if holder != nil {
				eventually(t, "the client still waits", func() bool { return s.Stats().Waiting == 0 })
				_, err := r.commit(r.ctx(), holder)
				require.NoError(t, err)
			}
			within, cancel := context.WithTimeout(r.ctx(), shortClosed+time.Second)
			defer cancel()
			_, err := r.apply(within, upsert("free"))
			require.NoError(t, err, "the database is held")
			if h != nil {
				h.Release()
			}
			eventually(t, "a transaction is left open", func() bool { return s.Stats() == front.Stats{} })
			require.Equal(t, mode.left, r.count("Id != 'free'"))
			if mode.after != nil {
				mode.after(t, c)
			}
		})
	}
}

// vanishing starts a client in another process. kill kills it; with says it waits until the client is ready.
func vanishing(t *testing.T, mode, addr, database string, says bool) (kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestClientThatVanishes$", "-test.v", "-test.timeout=2m")
	child.Env = append(os.Environ(), "VANISH_MODE="+mode, "VANISH_FRONT="+addr, "VANISH_DATABASE="+database)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = child.Stdout
	_, err = child.StdinPipe() // it closes when this program ends, however that happens
	require.NoError(t, err)
	require.NoError(t, child.Start())
	ready, all := make(chan struct{}, 1), make(chan string, 1)
	go func() {
		var said strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "the client is ready") {
				select {
				case ready <- struct{}{}:
				default: // it has been said
				}
			}
		}
		all <- said.String()
	}()
	kill = sync.OnceFunc(func() {
		_ = child.Process.Kill()
		text := <-all
		_ = child.Wait()
		if t.Failed() {
			t.Log(text)
		}
	})
	t.Cleanup(kill)
	if says {
		select {
		case <-ready:
		case <-time.After(patience):
			require.FailNow(t, "the client is not ready")
		}
	}
	return kill
}

// TestClientThatVanishes is the client that is killed.
func TestClientThatVanishes(t *testing.T) {
	mode := os.Getenv("VANISH_MODE")
	if mode == "" {
		t.Skip("it is started by TestClientsThatVanish")
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // nobody is left to kill it
	}()
	r := newRaw(t, os.Getenv("VANISH_FRONT"), os.Getenv("VANISH_DATABASE"))
	lossModes[mode].run(r, func() { fmt.Println("the client is ready") })
	select {} // until it is killed
}
