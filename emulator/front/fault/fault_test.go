package fault

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const database = "projects/p/instances/i/databases/d"

// exchange is an RPC that notes what is done to it. err is the server's own answer.
type exchange struct {
	err error

	mu   sync.Mutex
	done []string
}

func (x *exchange) did(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done = append(x.done, what)
}

func (x *exchange) steps() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.done)
}

func (x *exchange) Forward(ctx context.Context, reply func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.did("forward")
	if reply != nil {
		if err := reply(); err != nil {
			return err
		}
	}
	if x.err == nil {
		x.did("answer")
	}
	return x.err
}

func (x *exchange) Rollback(context.Context) { x.did("rollback") }
func (x *exchange) Forget()                  { x.did("forget") }
func (x *exchange) Cut()                     { x.did("cut") }

func commit() Call { return Call{Method: "Commit", Database: database, Tag: "queue=Q"} }

func TestNoRules(t *testing.T) {
	var s Set
	x := &exchange{}
	require.NoError(t, s.Run(t.Context(), commit(), x))
	require.Equal(t, []string{"forward", "answer"}, x.steps())
	require.True(t, s.Empty())
	require.Empty(t, s.Records())
}

func TestMatching(t *testing.T) {
	call := Call{Method: "ExecuteSql", Database: database, SQL: "DELETE FROM Q WHERE Id = @id", Tag: "queue=Q, handler=h",
		Request: &spannerpb.ExecuteSqlRequest{Seqno: 7}}
	for name, test := range map[string]struct {
		rule Rule
		want bool
	}{
		"everything":          {Rule{}, true},
		"method":              {Rule{Method: "ExecuteSql"}, true},
		"another method":      {Rule{Method: "ExecuteStreamingSql"}, false},
		"database":            {Rule{Database: database}, true},
		"another database":    {Rule{Database: database + "2"}, false},
		"part of the text":    {Rule{SQL: "FROM Q "}, true},
		"another text":        {Rule{SQL: "FROM Q2"}, false},
		"whole tag":           {Rule{Tag: "queue=Q, handler=h"}, true},
		"part of the tag":     {Rule{Tag: "handler=h"}, true},
		"beginning of a part": {Rule{Tag: "queue="}, false},
		"predicate":           {Rule{Match: func(c Call) bool { return c.Request.(*spannerpb.ExecuteSqlRequest).Seqno == 7 }}, true},
		"predicate refuses":   {Rule{Match: func(c Call) bool { return c.Request == nil }}, false},
		"all but one":         {Rule{Method: "ExecuteSql", Tag: "handler=h", SQL: "INSERT"}, false},
		"rows":                {Rule{Rows: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			test.rule.Do = Before(codes.Internal, "x")
			h := s.Add(test.rule)
			err := s.Run(t.Context(), call, &exchange{})
			require.Equal(t, test.want, err != nil)
			require.Equal(t, test.want, h.Applied() == 1)
		})
	}
}

func TestRulesAboutRowsSeeOnlyRows(t *testing.T) {
	var s Set
	h := s.Add(Rule{Rows: true, Nth: 2, Do: Before(codes.Unavailable, "broken")})
	c := Call{Method: "ExecuteStreamingSql"}
	require.NoError(t, s.Run(t.Context(), c, &exchange{}))
	c.Row = new(spannerpb.PartialResultSet)
	require.NoError(t, s.Run(t.Context(), c, &exchange{}))
	require.Equal(t, codes.Unavailable, status.Code(s.Run(t.Context(), c, &exchange{})))
	require.NoError(t, s.Run(t.Context(), c, &exchange{}))
	require.Equal(t, 3, h.Matched())
}

func TestWhichMatches(t *testing.T) {
	for name, test := range map[string]struct {
		rule Rule
		want []bool
	}{
		"all":             {Rule{}, []bool{true, true, true, true}},
		"the second":      {Rule{Nth: 2}, []bool{false, true, false, false}},
		"two":             {Rule{Times: 2}, []bool{true, true, false, false}},
		"two from second": {Rule{Nth: 2, Times: 2}, []bool{false, true, true, false}},
		"certain":         {Rule{Probability: 1}, []bool{true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			test.rule.Do = Before(codes.Internal, "x")
			h := s.Add(test.rule)
			var got []bool
			for range test.want {
				got = append(got, s.Run(t.Context(), commit(), &exchange{}) != nil)
			}
			require.Equal(t, test.want, got)
			require.Equal(t, len(test.want), h.Matched())
		})
	}
}

func TestRecords(t *testing.T) {
	var s Set
	h := s.Add(Rule{Name: "second commit", Method: "Commit", Nth: 2, Do: After(codes.Internal, "gone")})
	other := s.Add(Rule{Method: "Rollback", Do: Abort()})
	for range 3 {
		_ = s.Run(t.Context(), commit(), &exchange{})
	}
	require.Len(t, s.Records(), 1)
	r := h.Records()[0]
	require.Equal(t, s.Records()[0], r)
	require.False(t, r.At.IsZero())
	r.At = s.Records()[0].At
	require.Equal(t, Record{At: r.At, Rule: "second commit", Action: "after Internal", N: 2, Method: "Commit", Database: database, Tag: "queue=Q"}, r)
	require.Empty(t, other.Records())
}

func TestRecordsAreBounded(t *testing.T) {
	var s Set
	h := s.Add(Rule{Do: Before(codes.Internal, "x")})
	for range keptRecords + 10 {
		_ = s.Run(t.Context(), commit(), &exchange{})
	}
	require.Equal(t, keptRecords+10, h.Applied())
	kept := h.Records()
	require.LessOrEqual(t, len(kept), keptRecords)
	require.Equal(t, keptRecords+10, kept[len(kept)-1].N)
}

// Decision n of (rule, method, tag) depends on nothing but the seed.
func TestChance(t *testing.T) {
	decisions := func(seed uint64, name, tag string, between func(*Set)) (row []bool) {
		var s Set
		h := s.Add(Rule{Name: name, Probability: 0.3, Seed: seed, Do: Before(codes.Internal, "x")})
		for range 200 {
			before := h.Applied()
			_ = s.Run(t.Context(), Call{Method: "Commit", Tag: tag}, &exchange{})
			row = append(row, h.Applied() > before)
			if between != nil {
				between(&s)
			}
		}
		return row
	}
	first := decisions(7, "r", "a", nil)
	require.Equal(t, first, decisions(7, "r", "a", nil))
	require.Equal(t, first, decisions(7, "r", "a", func(s *Set) {
		_ = s.Run(t.Context(), Call{Method: "Commit", Tag: "another"}, &exchange{})
		_ = s.Run(t.Context(), Call{Method: "Read", Tag: "a"}, &exchange{})
	}), "other calls between change the decisions")
	require.NotEqual(t, first, decisions(8, "r", "a", nil))
	require.NotEqual(t, first, decisions(7, "r2", "a", nil))
	require.NotEqual(t, first, decisions(7, "r", "b", nil))

	n := 0
	for i := range 20000 {
		if draw(1, "r", decision{"Commit", "t"}, i) < 0.3 {
			n++
		}
	}
	require.InDelta(t, 0.3, float64(n)/20000, 0.02)
}

func TestNonsenseIsRefused(t *testing.T) {
	var s Set
	for name, r := range map[string]Rule{
		"no action":           {},
		"negative nth":        {Do: Abort(), Nth: -1},
		"negative times":      {Do: Abort(), Times: -1},
		"probability":         {Do: Abort(), Probability: 1.5},
		"forget of a read":    {Do: Forget(), Method: "Read"},
		"forget of all":       {Do: Forget()},
		"forget of rows":      {Do: Forget(), Method: "Commit", Rows: true},
		"negative probabilty": {Do: Abort(), Probability: -0.1},
		"negative delay":      {Do: Delay(-1)},
		"away for no time":    {Do: Away(0)},
		"a full method name":  {Do: Abort(), Method: "/google.spanner.v1.Spanner/Commit"},
	} {
		require.Panics(t, func() { s.Add(r) }, name)
	}
	require.Panics(t, func() { Before(codes.OK, "") })
	require.Panics(t, func() { After(codes.OK, "") })
	require.True(t, s.Empty())
}

// Rules wrap each other in the order in which they were added; one behind a rule that does not forward sees nothing.
func TestOrder(t *testing.T) {
	var s Set
	outer := s.Add(Rule{Name: "outer", Do: After(codes.Internal, "outer")})
	inner := s.Add(Rule{Name: "inner", Do: After(codes.Unknown, "inner")})
	x := &exchange{}
	err := s.Run(t.Context(), commit(), x)
	require.Equal(t, codes.Unknown, status.Code(err), "the inner reply comes first")
	require.Equal(t, []string{"forward"}, x.steps())
	require.Equal(t, 1, inner.Applied())
	require.Zero(t, outer.Applied(), "the outer rule's answer was never reached")

	inner.Remove()
	blocked := s.Add(Rule{Name: "behind", Do: Abort()})
	front := Set{}
	first := front.Add(Rule{Do: Before(codes.Internal, "x")})
	last := front.Add(Rule{Do: Abort()})
	_ = front.Run(t.Context(), commit(), &exchange{})
	require.Equal(t, 1, first.Applied())
	require.Zero(t, last.Matched())
	blocked.Remove()
}

func TestRemove(t *testing.T) {
	var s Set
	h := s.Add(Rule{Do: Abort()})
	require.Error(t, s.Run(t.Context(), commit(), &exchange{}))
	h.Remove()
	h.Remove()
	require.True(t, s.Empty())
	require.NoError(t, s.Run(t.Context(), commit(), &exchange{}))
	require.Equal(t, 1, h.Applied())
	require.Len(t, h.Records(), 1)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	var s Set
	h := s.Add(Rule{Do: Abort()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Wait(ctx), context.Canceled)
	_ = s.Run(t.Context(), commit(), &exchange{})
	require.NoError(t, h.Wait(t.Context()))
	require.True(t, errors.Is(h.WaitN(ctx, 2), context.Canceled))
}
