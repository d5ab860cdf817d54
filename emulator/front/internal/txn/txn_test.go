package txn

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	session     = "projects/p/instances/i/databases/d/sessions/s"
	idleBound   = 10 * time.Second
	closedBound = time.Second
)

// pool is an emulator that notes what becomes of its transactions.
type pool struct {
	mu     sync.Mutex
	next   int
	open   map[string]bool
	given  int
	refuse error // of the next EndTx

	restarted map[string]bool // transactions that were lost with the emulator
	away      error           // of Holds
}

func (p *pool) Begin(_ context.Context, database string, _ *spannerpb.TransactionOptions) (*backend.Tx, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = make(map[string]bool)
	}
	p.next++
	id := fmt.Sprint(p.next)
	p.open[id] = true
	return &backend.Tx{Session: &backend.Session{Name: "s" + id, Database: database}, ID: []byte(id)}, nil
}

func (p *pool) EndTx(_ context.Context, tx *backend.Tx) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, string(tx.ID))
	err := p.refuse
	p.refuse = nil
	return err
}

func (p *pool) Rollback(ctx context.Context, tx *backend.Tx) {
	if p.EndTx(ctx, tx) == nil {
		p.Give(tx.Session)
	}
}

func (p *pool) Holds(_ context.Context, tx *backend.Tx) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away != nil {
		return false, p.away
	}
	return !p.restarted[string(tx.ID)], nil
}

func (p *pool) Supersede(ctx context.Context, tx *backend.Tx) { p.Rollback(ctx, tx) }

func (p *pool) Give(*backend.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given++
}

// landed says that what is open has been committed: nobody rolls that back.
func (p *pool) landed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.open)
}

func (p *pool) count() (open, given int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open), p.given
}

func readWrite() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)}}
}

// statement runs a statement that does nothing.
func statement(ctx context.Context, t *Txn) error {
	return t.Run(ctx, false, func(context.Context, *backend.Tx) error { return nil })
}

func commit(ctx context.Context, t *Txn, err error) (*spannerpb.CommitResponse, error) {
	return t.Commit(ctx, false, func(context.Context, *backend.Tx) (*spannerpb.CommitResponse, error) {
		if err != nil {
			return nil, err
		}
		return &spannerpb.CommitResponse{
			CommitTimestamp: timestamppb.New(time.Unix(5, 6)),
			CommitStats:     &spannerpb.CommitResponse_CommitStats{MutationCount: 3},
		}, nil
	})
}

func requireAborted(t *testing.T, err error) {
	t.Helper()
	st := status.Convert(err)
	require.Equal(t, codes.Aborted, st.Code(), "%v", err)
	require.Len(t, st.Details(), 1)
	require.IsType(t, &errdetails.RetryInfo{}, st.Details()[0])
}

func inBubble(t *testing.T, test func(t *testing.T, p *pool, m *Manager)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{}
		m := NewManager(p, idleBound, closedBound)
		test(t, p, m)
		m.Close(t.Context())
		open, _ := p.count()
		require.Zero(t, open, "transactions of the emulator are left open")
		n, waiting := m.Stats()
		require.Zero(t, n)
		require.Zero(t, waiting)
	})
}

func TestNothingIsOpenedBeforeTheFirstCall(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		open, _ := p.count()
		require.Zero(t, open)
		require.Equal(t, Begun, x.State())
		require.NoError(t, x.Rollback(t.Context()))
		require.Equal(t, RolledBack, x.State())
		require.Zero(t, p.next)
	})
}

func TestCommittedTransactionGivesItsSessionBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), x))
		require.Equal(t, Active, x.State())
		_, given := p.count()
		require.Zero(t, given)
		_, err := commit(t.Context(), x, nil)
		require.NoError(t, err)
		_, given = p.count()
		require.Equal(t, 1, given)
		p.landed()
	})
}

// A session goes back only when the last call that uses it is over, and the turn as soon as the locks are gone.
func TestSessionOutlivesItsTransaction(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		inside, leave := make(chan struct{}), make(chan struct{})
		result := make(chan error, 1)
		go func() {
			result <- x.Run(t.Context(), false, func(context.Context, *backend.Tx) error {
				close(inside)
				<-leave
				return status.Error(codes.Internal, "cut short")
			})
		}()
		<-inside
		x.Abort(t.Context(), "no more")
		next := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), next), "the turn was not passed on")
		open, given := p.count()
		require.Equal(t, 1, open)
		require.Zero(t, given, "a session in use was given back")
		close(leave)
		requireAborted(t, <-result)
		_, given = p.count()
		require.Equal(t, 1, given)
	})
}

func TestSessionThatCannotBeEndedIsNotGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), x))
		p.refuse = status.Error(codes.Unavailable, "gone")
		require.NoError(t, x.Rollback(t.Context()))
		_, given := p.count()
		require.Zero(t, given)
	})
}

func TestSecondCommitWaitsAndGetsTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		ctx, cancel := context.WithCancel(t.Context())
		sent, answer := make(chan struct{}), make(chan struct{})
		ran := 0
		first := make(chan error, 1)
		go func() {
			_, err := x.Commit(ctx, false, func(ctx context.Context, _ *backend.Tx) (*spannerpb.CommitResponse, error) {
				ran++
				close(sent)
				<-answer
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return &spannerpb.CommitResponse{CommitTimestamp: timestamppb.New(time.Unix(1, 2))}, nil
			})
			first <- err
		}()
		<-sent
		require.Equal(t, Committing, x.State())
		require.Equal(t, codes.FailedPrecondition, status.Code(statement(t.Context(), x)))
		cancel() // the client has left; the commit goes on

		second := make(chan *spannerpb.CommitResponse, 1)
		go func() {
			r, err := commit(t.Context(), x, status.Error(codes.Internal, "committed twice"))
			if err != nil {
				t.Error(err)
			}
			second <- r
		}()
		rolledBack := make(chan error, 1)
		go func() { rolledBack <- x.Rollback(t.Context()) }()
		x.Abort(t.Context(), "must not disturb a commit")
		synctest.Wait()
		require.Empty(t, second)
		require.Empty(t, rolledBack)

		close(answer)
		require.NoError(t, <-first)
		require.EqualValues(t, 1, (<-second).GetCommitTimestamp().GetSeconds())
		require.Equal(t, codes.FailedPrecondition, status.Code(<-rolledBack))
		require.Equal(t, 1, ran)
		require.Equal(t, Committed, x.State())
		p.landed()
	})
}

// When the emulator gave no answer, the next Commit asks it again, in the same transaction.
func TestUnansweredCommitIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		_, err := commit(t.Context(), x, status.Error(codes.Unavailable, "no answer"))
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, Active, x.State())
		_, err = commit(t.Context(), x, nil)
		require.NoError(t, err)
		require.Equal(t, 1, p.next, "it was sent in another transaction")
		p.landed()
	})
}

func TestMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		want, err := commit(t.Context(), x, nil)
		require.NoError(t, err)
		found, err := m.Find(session, x.id)
		require.NoError(t, err)
		require.NotSame(t, x, found)
		got, err := commit(t.Context(), found, status.Error(codes.Internal, "committed twice"))
		require.NoError(t, err)
		require.True(t, proto.Equal(want, got), "%v", got)
		_, err = m.Find(session+"2", x.id)
		require.Equal(t, codes.NotFound, status.Code(err))

		time.Sleep(memoryLength)
		m.Sweep(t.Context())
		found, _ = m.Find(session, x.id)
		require.Equal(t, Committed, found.State(), "forgotten too early")
		time.Sleep(time.Second)
		m.Sweep(t.Context())
		found, err = m.Find(session, x.id)
		require.NoError(t, err)
		_, err = commit(t.Context(), found, nil)
		requireAborted(t, err)
		p.landed()
	})
}

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	for i := range uint64(3 * memorySize) {
		m.add(i, &record{at: time.Now()})
	}
	require.Len(t, m.records, memorySize)
	require.LessOrEqual(t, len(m.order), 2*memorySize)
	require.Nil(t, m.find(0))
	require.NotNil(t, m.find(3*memorySize-1))
	m.sweep(time.Now().Add(2 * memoryLength))
	require.Empty(t, m.records)
	require.Empty(t, m.order)
}

func TestForget(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		_, err := commit(t.Context(), x, nil)
		require.NoError(t, err)
		m.Forget(x.id)
		found, err := m.Find(session, x.id)
		require.NoError(t, err)
		_, err = commit(t.Context(), found, nil)
		require.Equal(t, codes.NotFound, status.Code(err))
		require.Equal(t, codes.NotFound, status.Code(statement(t.Context(), found)))
		require.NoError(t, found.Rollback(t.Context()))
		p.landed()
	})
}

func TestOtherFrontsTransactions(t *testing.T) {
	m := NewManager(&pool{}, idleBound, closedBound)
	x, err := m.Find(session, ident.ReadWrite{Front: 1, Number: 1})
	require.NoError(t, err)
	requireAborted(t, statement(t.Context(), x))
	require.NoError(t, x.Rollback(t.Context()))
}

func TestIdleOwnerLosesItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		owner := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), owner))
		time.Sleep(10 * idleBound)
		require.NoError(t, statement(t.Context(), owner), "it was ended although nobody waited")

		begin := time.Now()
		other := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), other))
		require.Equal(t, idleBound, time.Since(begin))
		requireAborted(t, statement(t.Context(), owner))
		_, err := commit(t.Context(), owner, nil)
		requireAborted(t, err)
		open, _ := p.count()
		require.Equal(t, 1, open)
	})
}

func TestCancelledWaiterLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		owner := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), owner))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waiter := m.Begin(session, readWrite())
		require.Equal(t, codes.DeadlineExceeded, status.Code(statement(ctx, waiter)))
		require.Equal(t, Begun, waiter.State())
		open, given := p.count()
		require.Equal(t, 1, open, "the waiter's transaction is still open")
		require.Equal(t, 1, given)
		require.NoError(t, owner.Rollback(t.Context()))
		require.NoError(t, statement(t.Context(), waiter), "it can come back")
	})
}

// Two calls of one transaction wait together; when one gives up the other goes on.
func TestCallsOfOneTransactionWaitTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		owner := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), owner))
		x := m.Begin(session, readWrite())
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- statement(ctx, x) }()
		synctest.Wait()
		go func() { second <- statement(t.Context(), x) }()
		synctest.Wait()
		require.Equal(t, 1, m.line(x.Database).Waiting(), "one transaction has two places in the line")
		cancel()
		require.Equal(t, codes.Canceled, status.Code(<-first))
		synctest.Wait()
		require.NoError(t, owner.Rollback(t.Context()))
		require.NoError(t, <-second)
	})
}

func TestRollbackOfAWaiter(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		owner := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), owner))
		waiter := m.Begin(session, readWrite())
		result := make(chan error, 1)
		go func() { result <- statement(t.Context(), waiter) }()
		synctest.Wait()
		require.NoError(t, waiter.Rollback(t.Context()))
		require.Equal(t, codes.FailedPrecondition, status.Code(<-result))
		require.Zero(t, m.line(waiter.Database).Waiting())
	})
}

func TestClosedConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		gone, other := m.NewClient(), m.NewClient()
		abandoned, taken, unopened := m.Begin(session, readWrite()), m.Begin("projects/p/instances/i/databases/e/sessions/s", readWrite()), m.Begin(session, readWrite())
		for _, x := range []*Txn{abandoned, taken, unopened} {
			x.Follow(gone)
		}
		require.NoError(t, statement(t.Context(), abandoned))
		require.NoError(t, statement(t.Context(), taken))
		gone.Close()
		time.Sleep(closedBound - time.Millisecond)
		taken.Follow(other) // its client came back on another connection
		require.NoError(t, statement(t.Context(), abandoned), "it was ended too early")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		requireAborted(t, statement(t.Context(), abandoned))
		requireAborted(t, statement(t.Context(), unopened))
		require.NoError(t, statement(t.Context(), taken))
		require.Empty(t, gone.txns)
	})
}

// A call that is under way when its connection closes ends first.
func TestClosedConnectionUnderACall(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		c := m.NewClient()
		x := m.Begin(session, readWrite())
		x.Follow(c)
		leave, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- x.Run(t.Context(), false, func(context.Context, *backend.Tx) error { <-leave; return nil })
		}()
		synctest.Wait()
		c.Close()
		time.Sleep(5 * closedBound)
		require.Equal(t, Active, x.State())
		close(leave)
		require.NoError(t, <-result)
		time.Sleep(closedBound)
		synctest.Wait()
		require.Equal(t, Aborted, x.State())
	})
}

func TestAbortedByTheEmulator(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		err := x.Run(t.Context(), false, func(context.Context, *backend.Tx) error { return status.Error(codes.Aborted, "dice") })
		requireAborted(t, err)
		require.Equal(t, Aborted, x.State())
		require.Equal(t, "dice", status.Convert(statement(t.Context(), x)).Message())
		require.NoError(t, x.Rollback(t.Context()))
	})
}

func TestIdleForTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), x))
		time.Sleep(memoryLength)
		m.Sweep(t.Context())
		require.Equal(t, Active, x.State())
		time.Sleep(time.Second)
		m.Sweep(t.Context())
		require.Equal(t, Aborted, x.State())
	})
}

func TestDroppedDatabaseAndDeletedSession(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		const other = "projects/p/instances/i/databases/e/sessions/s"
		a, b := m.Begin(session, readWrite()), m.Begin(other, readWrite())
		require.NoError(t, statement(t.Context(), a))
		require.NoError(t, statement(t.Context(), b))
		m.DropDatabase(t.Context(), a.Database)
		require.Equal(t, Aborted, a.State())
		require.Equal(t, Active, b.State())
		m.EndSession(t.Context(), other)
		require.Equal(t, Aborted, b.State())
	})
}

func TestPartitionedDML(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: new(spannerpb.TransactionOptions_PartitionedDml)}})
		err := x.Run(t.Context(), false, func(context.Context, *backend.Tx) error { return status.Error(codes.InvalidArgument, "no such table") })
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.Equal(t, Begun, x.State())
		require.True(t, m.line(x.Database).Free(), "a failed statement keeps the turn")
		open, given := p.count()
		require.Zero(t, open)
		require.Equal(t, 1, given)
		require.NoError(t, statement(t.Context(), x))
		require.True(t, m.line(x.Database).Free(), "a partitioned DML transaction keeps the turn after its statement")
		require.Equal(t, codes.InvalidArgument, status.Code(statement(t.Context(), x)))
		_, err = commit(t.Context(), x, nil)
		require.Equal(t, ErrNotReadWrite, err)
		require.Equal(t, ErrNotReadWrite, x.Rollback(t.Context()))
		p.landed()
	})
}

func TestLastStatement(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool, m *Manager) {
		x := m.Begin(session, readWrite())
		last := func(err error) error {
			return x.Run(t.Context(), true, func(context.Context, *backend.Tx) error { return err })
		}
		require.Error(t, last(status.Error(codes.OutOfRange, "a miss")))
		require.NoError(t, statement(t.Context(), x), "a last statement that failed is none")
		require.NoError(t, last(nil))
		require.Equal(t, codes.FailedPrecondition, status.Code(statement(t.Context(), x)))
		_, err := x.Commit(t.Context(), true, nil)
		require.Equal(t, codes.FailedPrecondition, status.Code(err))
		_, err = commit(t.Context(), x, nil)
		require.NoError(t, err)
		p.landed()
	})
}

// A transaction of an emulator that was restarted is aborted, before anything is sent that could meet another one of the
// same name. As long as nobody answers, it waits for nothing and stays as it is.
func TestTransactionLostWithItsEmulator(t *testing.T) {
	p := &pool{restarted: make(map[string]bool)}
	m := NewManager(p, idleBound, closedBound)
	defer m.Close(t.Context())
	for _, use := range []func(*Txn) error{
		func(tx *Txn) error { return statement(t.Context(), tx) },
		func(tx *Txn) error { _, err := commit(t.Context(), tx, nil); return err },
	} {
		tx := m.Begin(session, readWrite())
		require.NoError(t, statement(t.Context(), tx))
		p.away = status.Error(codes.Unavailable, "nobody answers")
		require.Equal(t, codes.Unavailable, status.Code(use(tx)))
		require.Equal(t, Active, tx.State())
		p.away = nil
		p.restarted[string(fmt.Sprint(p.next))] = true
		requireAborted(t, use(tx))
		require.NoError(t, tx.Rollback(t.Context()))
	}
	// The turn is free.
	tx := m.Begin(session, readWrite())
	require.NoError(t, statement(t.Context(), tx))
	require.NoError(t, tx.Rollback(t.Context()))
}
