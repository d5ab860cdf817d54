package backend

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emulator knows which sessions exist and which have an open transaction. Deleting one with an open transaction is
// what the real one does not survive.
type emulator struct {
	spannerpb.SpannerClient
	t *testing.T

	mu       sync.Mutex
	made     int
	sessions map[string]bool // open or not
	created  map[string]*timestamppb.Timestamp
	rolled   []string // sessions with a rollback
	down     int      // so many rollbacks fail
}

func (e *emulator) CreateSession(context.Context, *spannerpb.CreateSessionRequest, ...grpc.CallOption) (*spannerpb.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	name := fmt.Sprintf("s%d", e.made)
	e.sessions[name] = false
	e.created[name] = timestamppb.Now()
	return &spannerpb.Session{Name: name, CreateTime: e.created[name]}, nil
}

func (e *emulator) GetSession(_ context.Context, r *spannerpb.GetSessionRequest, _ ...grpc.CallOption) (*spannerpb.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.missingLocked(r.GetName()); err != nil {
		return nil, err
	}
	return &spannerpb.Session{Name: r.GetName(), CreateTime: e.created[r.GetName()]}, nil
}

// restart begins anew, with the same names.
func (e *emulator) restart(p *Pool) {
	p.Connecting()
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.sessions)
	e.made = 0
}

func (e *emulator) missingLocked(name string) error {
	if _, ok := e.sessions[name]; ok {
		return nil
	}
	st, err := status.New(codes.NotFound, "Session not found").WithDetails(&errdetails.ResourceInfo{ResourceType: sessionType, ResourceName: name})
	require.NoError(e.t, err)
	return st.Err()
}

func (e *emulator) BeginTransaction(_ context.Context, r *spannerpb.BeginTransactionRequest, _ ...grpc.CallOption) (*spannerpb.Transaction, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.missingLocked(r.GetSession()); err != nil {
		return nil, err
	}
	if e.sessions[r.GetSession()] {
		e.t.Errorf("session %s has an open transaction", r.GetSession())
	}
	e.sessions[r.GetSession()] = true
	return &spannerpb.Transaction{Id: []byte("1")}, nil
}

func (e *emulator) Rollback(_ context.Context, r *spannerpb.RollbackRequest, _ ...grpc.CallOption) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down > 0 {
		e.down--
		return nil, status.Error(codes.Unavailable, "down")
	}
	if err := e.missingLocked(r.GetSession()); err != nil {
		return nil, err
	}
	e.sessions[r.GetSession()] = false
	e.rolled = append(e.rolled, r.GetSession())
	return new(emptypb.Empty), nil
}

func (e *emulator) DeleteSession(_ context.Context, r *spannerpb.DeleteSessionRequest, _ ...grpc.CallOption) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[r.GetName()] {
		e.t.Errorf("session %s is deleted with an open transaction", r.GetName())
	}
	delete(e.sessions, r.GetName())
	return new(emptypb.Empty), nil
}

func (e *emulator) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.sessions)
}

func newPool(t *testing.T) (*Pool, *emulator) {
	e := &emulator{t: t, sessions: make(map[string]bool), created: make(map[string]*timestamppb.Timestamp)}
	return NewPool(e, slog.New(slog.DiscardHandler)), e
}

const database = "projects/p/instances/i/databases/d"

func TestSessionsAreUsedAgain(t *testing.T) {
	p, e := newPool(t)
	for range 5 {
		a, err := p.Begin(t.Context(), database, nil)
		require.NoError(t, err)
		b, err := p.Begin(t.Context(), database, nil)
		require.NoError(t, err)
		require.NotEqual(t, a.Session.Name, b.Session.Name, "two transactions on one session")
		p.Rollback(t.Context(), a)
		p.Rollback(t.Context(), b)
	}
	require.Equal(t, 2, e.made)
	require.Equal(t, 2, p.Free())
	s, err := p.Take(t.Context(), database+"2")
	require.NoError(t, err)
	require.Equal(t, 3, e.made, "a session of another database was given")
	p.Give(s)
	require.ElementsMatch(t, []string{database, database + "2"}, p.Databases())
}

// The emulator forgets sessions after an hour, or when it was restarted.
func TestForgottenSessions(t *testing.T) {
	p, e := newPool(t)
	for range 3 {
		a, err := p.Create(t.Context(), database, nil)
		require.NoError(t, err)
		p.Give(a)
	}
	e.forgetAll()
	tx, err := p.Begin(t.Context(), database, nil)
	require.NoError(t, err)
	require.Zero(t, p.Free(), "the others are dead too")
	p.Rollback(t.Context(), tx)

	e.forgetAll()
	calls := 0
	err = p.With(t.Context(), database, func(session string) error {
		calls++
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.missingLocked(session)
	})
	require.NoError(t, err)
	require.Equal(t, 2, calls)

	// Another NOT_FOUND is the call's own.
	calls = 0
	err = p.With(t.Context(), database, func(string) error { calls++; return status.Error(codes.NotFound, "no such row") })
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Equal(t, 1, calls)
}

// An emulator that was restarted gives out the same names again. Those from before are never mistaken for them.
func TestNamesThatComeBack(t *testing.T) {
	p, e := newPool(t)
	idle, err := p.Create(t.Context(), database, nil)
	require.NoError(t, err)
	p.Give(idle)
	inUse, err := p.Begin(t.Context(), database, nil) // on s1
	require.NoError(t, err)
	read, err := p.Take(t.Context(), database) // s2
	require.NoError(t, err)
	e.restart(p)

	mine, err := p.Begin(t.Context(), database, nil) // s1 again
	require.NoError(t, err)
	require.Equal(t, inUse.Session.Name, mine.Session.Name, "this shows nothing")
	p.Give(read)
	require.Zero(t, p.Free())
	holds, err := p.Holds(t.Context(), inUse)
	require.NoError(t, err)
	require.False(t, holds)
	holds, err = p.Holds(t.Context(), mine)
	require.NoError(t, err)
	require.True(t, holds)
	p.Rollback(t.Context(), inUse)
	require.Empty(t, e.rolled, "somebody else's transaction was rolled back")
	require.Zero(t, p.Free())
	p.Rollback(t.Context(), mine)
	require.Equal(t, []string{"s1"}, e.rolled)
	require.Equal(t, 1, p.Free())
}

// So does a database that was dropped and created again.
func TestNamesOfADatabaseThatWasDropped(t *testing.T) {
	p, _ := newPool(t)
	before, err := p.Take(t.Context(), database)
	require.NoError(t, err)
	other, err := p.Take(t.Context(), database+"2")
	require.NoError(t, err)
	p.Drop(database)
	p.Give(before)
	p.Give(other)
	require.Equal(t, []string{database + "2"}, p.Databases())
}

// A connection that was only cut leads to the same emulator: what is open there is still held, and ended.
func TestConnectionThatWasCut(t *testing.T) {
	p, e := newPool(t)
	tx, err := p.Begin(t.Context(), database, nil)
	require.NoError(t, err)
	p.Connecting()
	holds, err := p.Holds(t.Context(), tx)
	require.NoError(t, err)
	require.True(t, holds)
	p.Rollback(t.Context(), tx)
	require.Equal(t, []string{"s1"}, e.rolled)
	require.Equal(t, 1, p.Free(), "its session is good again")
}

// A begin is not given up with its client: nobody could roll it back.
func TestBeginOutlivesItsCaller(t *testing.T) {
	p, _ := newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tx, err := p.Begin(ctx, database, nil)
	require.NoError(t, err)
	p.Rollback(t.Context(), tx)
}

func TestRollbackThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e := newPool(t)
		tx, err := p.Begin(t.Context(), database, nil)
		require.NoError(t, err)
		e.down = rollbackTries - 1
		require.NoError(t, p.EndTx(t.Context(), tx), "it was not tried again")
		p.Give(tx.Session)

		tx, err = p.Begin(t.Context(), database, nil)
		require.NoError(t, err)
		e.down = rollbackTries
		p.Rollback(t.Context(), tx)
		require.Zero(t, p.Free(), "a session with an open transaction is in the pool")
		p.Trim(t.Context(), time.Hour)
		require.Equal(t, 1, p.Free(), "the rollback was not made up for")
	})
}

func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e := newPool(t)
		var taken []*Session
		for range 3 {
			s, err := p.Take(t.Context(), database)
			require.NoError(t, err)
			taken = append(taken, s)
		}
		p.Give(taken[0])
		p.Give(taken[1])
		time.Sleep(time.Minute)
		p.Give(taken[2])
		p.Trim(t.Context(), 30*time.Second)
		require.Equal(t, 1, p.Free())
		require.Len(t, e.sessions, 1)
		require.Contains(t, e.sessions, taken[2].Name)
		p.Trim(t.Context(), 0)
		time.Sleep(time.Nanosecond)
		p.Trim(t.Context(), 0)
		require.Zero(t, p.Free())
		require.Empty(t, p.Databases())
	})
}
