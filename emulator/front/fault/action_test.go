package fault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestActionsThatDoNotWait(t *testing.T) {
	for name, test := range map[string]struct {
		do   Action
		code codes.Code
		text string
		done []string
	}{
		"abort":     {Abort(), codes.Aborted, "Transaction was aborted.", []string{"rollback"}},
		"before":    {Before(codes.Unknown, "outcome unknown"), codes.Unknown, "outcome unknown", []string{"rollback"}},
		"after":     {After(codes.Internal, "stream terminated by RST_STREAM"), codes.Internal, "stream terminated by RST_STREAM", []string{"forward"}},
		"forget":    {Forget(), codes.Unavailable, "the server was restarted", []string{"forward", "forget"}},
		"cut":       {Cut(), codes.Unavailable, "the connection was cut", []string{"cut"}},
		"cut reply": {CutReply(), codes.Unavailable, "the connection was cut", []string{"forward", "cut"}},
		"away":      {Away(time.Hour), codes.Unavailable, "the database is away", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			h := s.Add(Rule{Method: "Commit", Do: test.do})
			x := &exchange{}
			err := s.Run(t.Context(), commit(), x)
			require.Equal(t, test.code, status.Code(err))
			require.Equal(t, test.text, status.Convert(err).Message())
			require.Equal(t, test.done, x.steps())
			require.Equal(t, 1, h.Applied())
			require.Equal(t, test.do.String(), h.Records()[0].Action)
		})
	}
}

func TestAbortCarriesRetryInfo(t *testing.T) {
	var s Set
	s.Add(Rule{Do: Abort()})
	details := status.Convert(s.Run(t.Context(), commit(), &exchange{})).Details()
	require.Len(t, details, 1)
	require.IsType(t, &errdetails.RetryInfo{}, details[0])
}

// An answer that is an error is lost as well as any other.
func TestAfterReplacesErrorsToo(t *testing.T) {
	var s Set
	s.Add(Rule{Do: After(codes.Internal, "lost")})
	x := &exchange{err: status.Error(codes.AlreadyExists, "the row")}
	require.Equal(t, codes.Internal, status.Code(s.Run(t.Context(), commit(), x)))
}

func TestDelay(t *testing.T) {
	for name, test := range map[string]struct {
		do   Action
		done []string // after half the time
	}{
		"delay":       {Delay(time.Second), nil},
		"delay reply": {DelayReply(time.Second), []string{"forward"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Set
				h := s.Add(Rule{Do: test.do})
				x := &exchange{}
				begin := time.Now()
				result := make(chan error, 1)
				go func() { result <- s.Run(t.Context(), commit(), x) }()
				time.Sleep(time.Second / 2)
				synctest.Wait()
				require.Equal(t, test.done, x.steps())
				require.Equal(t, 1, h.Applied(), "it applies when it begins")
				require.NoError(t, <-result)
				require.Equal(t, time.Second, time.Since(begin))
				require.Equal(t, []string{"forward", "answer"}, x.steps())
			})
		})
	}
}

func TestDelayEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		s.Add(Rule{Do: Delay(time.Hour)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x := &exchange{}
		require.Equal(t, codes.DeadlineExceeded, status.Code(s.Run(ctx, commit(), x)))
		require.Empty(t, x.steps())
	})
}

func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		do   Action
		done []string // while held
		let  func(*Set, *Handle)
	}{
		"hold, released":       {Hold(), nil, func(_ *Set, h *Handle) { h.Release() }},
		"hold, removed":        {Hold(), nil, func(_ *Set, h *Handle) { h.Remove() }},
		"hold, cleared":        {Hold(), nil, func(s *Set, _ *Handle) { s.Clear() }},
		"hold reply, released": {HoldReply(), []string{"forward"}, func(_ *Set, h *Handle) { h.Release() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Set
				h := s.Add(Rule{Do: test.do})
				xs := []*exchange{{}, {}}
				result := make(chan error, 2)
				for _, x := range xs {
					go func() { result <- s.Run(t.Context(), commit(), x) }()
				}
				require.NoError(t, h.WaitN(t.Context(), 2))
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Empty(t, result)
				require.Equal(t, test.done, xs[0].steps())
				test.let(&s, h)
				require.NoError(t, <-result)
				require.NoError(t, <-result)
				require.Equal(t, []string{"forward", "answer"}, xs[1].steps())

				// It is over: nothing more is held.
				require.NoError(t, s.Run(t.Context(), commit(), &exchange{}))
				require.Equal(t, 2, h.Applied())
				h.Release()
			})
		})
	}
}

func TestHeldCallGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		s.Add(Rule{Do: Hold()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x := &exchange{}
		require.Equal(t, codes.DeadlineExceeded, status.Code(s.Run(ctx, commit(), x)))
		require.Empty(t, x.steps(), "what was given up was forwarded")
	})
}

func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		h := s.Add(Rule{Do: Drop()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		x := &exchange{}
		begin := time.Now()
		require.Equal(t, codes.DeadlineExceeded, status.Code(s.Run(ctx, commit(), x)))
		require.Equal(t, time.Minute, time.Since(begin))
		require.Equal(t, []string{"forward"}, x.steps())
		require.Equal(t, 1, h.Applied())
	})
}

// stream is an RPC that goes on until its context ends.
type stream struct{ exchange }

func (x *stream) Forward(ctx context.Context, _ func() error) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		open := make(chan error, 1)
		go func() { open <- s.Run(t.Context(), Call{Method: "ExecuteStreamingSql", Database: database}, &stream{}) }()
		synctest.Wait()
		s.Add(Rule{Method: "Commit", Nth: 1, Do: Away(time.Minute)})
		require.Equal(t, codes.Unavailable, status.Code(s.Run(t.Context(), commit(), &exchange{})))
		require.Equal(t, codes.Unavailable, status.Code(<-open), "what was under way goes on")

		x := &exchange{}
		require.Equal(t, codes.Unavailable, status.Code(s.Run(t.Context(), commit(), x)))
		require.Empty(t, x.steps())
		require.NoError(t, s.Run(t.Context(), Call{Database: database + "2"}, &exchange{}), "another database is away too")
		time.Sleep(time.Minute - time.Nanosecond)
		require.Error(t, s.Run(t.Context(), commit(), &exchange{}))
		time.Sleep(time.Nanosecond)
		require.NoError(t, s.Run(t.Context(), commit(), &exchange{}))

		s.Add(Rule{Method: "Commit", Nth: 1, Do: Away(time.Hour)})
		require.Error(t, s.Run(t.Context(), commit(), &exchange{}))
		s.Clear()
		require.NoError(t, s.Run(t.Context(), commit(), &exchange{}), "Clear brings it back")
		require.Empty(t, s.away.calls, "calls that ended are still known")
	})
}

// What is late is forwarded when it is released, also to a client that has left.
func TestLate(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s Set
			h := s.Add(Rule{Do: Late()})
			x := &exchange{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- s.Run(ctx, commit(), x) }()
			synctest.Wait()
			require.Equal(t, 1, h.Applied(), "it applies when the call has arrived")
			if leaves {
				cancel()
			}
			synctest.Wait()
			require.Empty(t, x.steps())
			h.Release()
			require.NoError(t, <-result)
			require.Equal(t, []string{"forward", "answer"}, x.steps())
		})
	}
}
