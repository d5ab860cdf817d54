package front_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// F31: a transaction that is left open blocks everything behind it. Whatever leaves it open, m2 lands within a bound.

// m2 is the next transaction. Its effect is a counter, so that one too many would show.
func m2(t *testing.T, c *spanner.Client, within time.Duration) {
	t.Helper()
	begin := time.Now()
	_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("UPDATE T SET N = N + 1 WHERE Id = 'm2' ASSERT_ROWS_MODIFIED 1"))
		return err
	})
	require.NoError(t, err)
	require.Less(t, time.Since(begin), within)
	require.EqualValues(t, 1, rowsOf(t, c, "SELECT N FROM T WHERE Id = 'm2'"))
}

func f31(t *testing.T, opts front.Options) (*spanner.Client, *front.Server, string, string) {
	t.Helper()
	db := emulatortest.Database(t, table)
	s, addr := newFront(t, db.Emulator().BackendAddr(), opts)
	c := clientAt(t, addr, db.Name)
	_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id", "N"}, []any{"m2", 0})})
	require.NoError(t, err)
	return c, s, addr, db.Name
}

// (a) A tool that answers ABORTED in place of a Commit must roll back what it did not commit.
func TestF31AbortInPlaceOfCommit(t *testing.T) {
	t.Parallel()
	c, s, _, _ := f31(t, front.Options{})
	h := s.Faults().Add(fault.Rule{Method: "Commit", Tag: "m1", Nth: 1, Do: fault.Abort()})
	runs := 0
	_, err := c.ReadWriteTransactionWithOptions(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		if runs == 2 { // what the first run left must not hold anybody up
			m2(t, c, time.Second)
		}
		_, err := tx.Update(ctx, spanner.NewStatement(insertSQL("m1")))
		return err
	}, spanner.TransactionOptions{TransactionTag: "m1"})
	require.NoError(t, err)
	require.Equal(t, 2, runs)
	require.Equal(t, 1, h.Applied())
	require.Zero(t, s.RPCs()["Rollback"], "the client had to roll back")
}

// (b) The deadline of a function passes after its first statement.
func TestF31DeadlineInTheMiddle(t *testing.T) {
	t.Parallel()
	c, s, _, _ := f31(t, front.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement(insertSQL("m1"))); err != nil {
			return err
		}
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	m2(t, c, time.Second)
	require.EqualValues(t, 1, s.RPCs()["Rollback"], "the rollback was not sent on a living context")
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM T WHERE Id = 'm1'"))
}

// (b) The same while the statement that begins the transaction is under way: its id is not known to anybody.
func TestF31DeadlineInTheFirstStatement(t *testing.T) {
	t.Parallel()
	c, s, _, _ := f31(t, front.Options{})
	h := s.Faults().Add(fault.Rule{Method: "ExecuteSql", SQL: "'m1'", Nth: 1, Do: fault.HoldReply()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(insertSQL("m1")))
			return err
		})
		result <- err
	}()
	require.NoError(t, h.Wait(t.Context()))
	cancel()
	require.Error(t, <-result)
	m2(t, c, time.Second)
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM T WHERE Id = 'm1'"))
}

// (c) A function that panics: Google's client rolls nothing back. Who waits gets the turn after the idle bound.
func TestF31Panic(t *testing.T) {
	t.Parallel()
	c, s, _, _ := f31(t, front.Options{IdleBound: shortIdle})
	require.Panics(t, func() {
		_, _ = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(insertSQL("m1")))
			require.NoError(t, err)
			panic("the handler's mistake")
		})
	})
	require.Equal(t, 1, s.Stats().OpenTransactions)
	m2(t, c, shortIdle+time.Second)
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM T WHERE Id = 'm1'"))
}

// (d) kill -9 inside the transaction.
func TestF31KilledProgram(t *testing.T) {
	t.Parallel()
	c, s, addr, database := f31(t, front.Options{ClosedBound: shortClosed})
	child := exec.Command(os.Args[0], "-test.run=^TestF31Child$", "-test.v")
	child.Env = append(os.Environ(), "F31_FRONT="+addr, "F31_DATABASE="+database)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	_, err = child.StdinPipe() // it closes when this program ends, however that happens
	require.NoError(t, err)
	require.NoError(t, child.Start())
	open := false
	for lines := bufio.NewScanner(out); !open && lines.Scan(); {
		open = strings.Contains(lines.Text(), "the transaction is open")
	}
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.True(t, open, "the child did not get so far")
	m2(t, c, shortClosed+time.Second)
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM T WHERE Id = 'm1'"))
	require.Zero(t, s.Stats().OpenTransactions)
}

// TestF31Child is the program that is killed.
func TestF31Child(t *testing.T) {
	addr, database := os.Getenv("F31_FRONT"), os.Getenv("F31_DATABASE")
	if addr == "" {
		t.Skip("it is started by TestF31KilledProgram")
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // nobody is left to kill it
	}()
	c := clientAt(t, addr, database)
	_, _ = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement(insertSQL("m1")))
		require.NoError(t, err)
		fmt.Println("the transaction is open")
		select {} // until it is killed
	})
}

// (e) DeleteSession while a transaction is open: the emulator would keep its locks, and crash later.
func TestF31DeletedSession(t *testing.T) {
	t.Parallel()
	c, s, addr, database := f31(t, front.Options{})
	r := newRaw(t, addr, database)
	r.hold("m1")
	_, err := r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: r.session})
	require.NoError(t, err)
	require.Zero(t, s.Stats().OpenTransactions)
	m2(t, c, time.Second)
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM T WHERE Id = 'm1'"))
	_, err = r.sql(r.ctx(), nil, "SELECT 1")
	requireCode(t, codes.NotFound, err)
}
