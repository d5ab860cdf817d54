package expiry

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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// table is a Store with one table, T, whose rows have all expired. Rows named in kept may not be deleted.
type table struct {
	mu      sync.Mutex
	rows    []string
	kept    map[string]bool
	largest int // batch that was committed
	turns   int
	gone    bool
	broken  error // of the queries for rows
}

func (f *table) HasPolicies(context.Context, string) (bool, error) { return true, nil }

func (f *table) Query(_ context.Context, _ string, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return nil, status.Error(codes.NotFound, "Database not found")
	}
	switch req.GetSql() {
	case policiesQuery:
		return rowsOf([]string{"", "T", "OLDER_THAN(Due, INTERVAL 1 DAY)"}), nil
	case keysQuery:
		return rowsOf([]string{"", "T", "Id"}), nil
	}
	return f.expired(req.GetSql())
}

func (f *table) expired(sql string) (*spannerpb.ResultSet, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	var limit, offset int
	if _, err := fmt.Sscanf(sql, "SELECT Id FROM T WHERE Due <= @spanqueue_cutoff ORDER BY Id LIMIT %d OFFSET %d", &limit, &offset); err != nil {
		return nil, status.Error(codes.Unknown, sql)
	}
	var found [][]string
	for i := offset; i < min(offset+limit, len(f.rows)); i++ {
		found = append(found, []string{f.rows[i]})
	}
	return rowsOf(found...), nil
}

func (f *table) InTurn(_ context.Context, _ string, do func(Query) ([]*spannerpb.Mutation, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns++
	ms, err := do(func(req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) { return f.expired(req.GetSql()) })
	if err != nil || len(ms) == 0 {
		return err
	}
	gone := map[string]bool{}
	for _, k := range ms[0].GetDelete().GetKeySet().GetKeys() {
		id := k.GetValues()[0].GetStringValue()
		if f.kept[id] {
			return status.Error(codes.FailedPrecondition, "it has children")
		}
		gone[id] = true
	}
	f.largest = max(f.largest, len(gone))
	var left []string
	for _, id := range f.rows {
		if !gone[id] {
			left = append(left, id)
		}
	}
	f.rows = left
	return nil
}

// left returns the rows, and turned how many turns were taken.
func (f *table) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.rows...)
}

func (f *table) turned() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turns
}

func rowsOf(rows ...[]string) *spannerpb.ResultSet {
	rs := &spannerpb.ResultSet{}
	for _, row := range rows {
		l := &structpb.ListValue{}
		for _, v := range row {
			l.Values = append(l.Values, structpb.NewStringValue(v))
		}
		rs.Rows = append(rs.Rows, l)
	}
	return rs
}

func numbered(n int) (rows []string) {
	for i := range n {
		rows = append(rows, fmt.Sprintf("%06d", i))
	}
	return rows
}

func newSweeper(store Store) *Sweeper {
	s := New(store, Options{Interval: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	s.Notice("d")
	return s
}

func TestExpiredRowsGoInBoundedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{rows: numbered(1234)}
		s := newSweeper(f)
		defer s.Close()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		require.Len(t, f.left(), 1234, "not before its time")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Empty(t, f.left())
		require.Equal(t, batchRows, f.largest)
		require.Equal(t, 3, f.turned())
		time.Sleep(time.Hour)
		require.Equal(t, 3, f.turned(), "no turn is taken where nothing has expired")
	})
}

func TestRowsThatMayNotBeDeletedStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{rows: numbered(1000), kept: map[string]bool{"000000": true, "000700": true, "000701": true, "000999": true}}
		s := newSweeper(f)
		defer s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"000000", "000700", "000701", "000999"}, f.left())
		require.Less(t, f.turned(), 150)
	})
}

// A look that fails ends, and the next one comes an interval later.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{rows: numbered(10), broken: status.Error(codes.InvalidArgument, "no such column")}
		s := newSweeper(f)
		defer s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, f.left(), 10)
		require.Zero(t, f.turned())
		f.mu.Lock()
		f.broken = nil
		f.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, f.left())
	})
}

func TestDatabasesThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{gone: true}
		s := newSweeper(f)
		defer s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		_, known := s.databases.Load("d")
		require.False(t, known)
	})
}

func TestNegativeIntervalIsNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{rows: numbered(1)}
		s := New(f, Options{Interval: -1})
		s.Notice("d")
		time.Sleep(24 * time.Hour)
		s.Close()
		require.Len(t, f.left(), 1)
	})
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy{
		"OLDER_THAN(Due, INTERVAL 3 DAY)":           {column: "Due", days: 3},
		" older_than ( `Due` ,\n interval 0 day ) ": {column: "Due"},
		"OLDER_THAN(`order by`, INTERVAL 7 DAY)":    {column: "order by", days: 7},
	} {
		column, days, err := parseExpression(text)
		require.NoError(t, err, text)
		require.Equal(t, want, policy{column: column, days: days}, text)
	}
	for _, text := range []string{"", "OLDER_THAN(Due, INTERVAL x DAY)", "INTERVAL '3 days' ON at", "OLDER_THAN(Due, INTERVAL 99999999999999999999 DAY)", "OLDER_THAN(A, B, INTERVAL 1 DAY)"} {
		_, _, err := parseExpression(text)
		require.Error(t, err, text)
	}
	now := time.Date(2026, 3, 31, 12, 0, 0, 123, time.UTC)
	at, some := policy{days: 31}.cutoff(now)
	require.True(t, some)
	require.Equal(t, time.Date(2026, 2, 28, 12, 0, 0, 123, time.UTC), at)
	_, some = policy{days: 1 << 31}.cutoff(now)
	require.False(t, some)
}

func TestTablesInSchemas(t *testing.T) {
	t.Parallel()
	all, err := readPolicies(rowsOf([]string{"s", "T", "OLDER_THAN(Due, INTERVAL 1 DAY)"}, []string{"", "T", "OLDER_THAN(B, INTERVAL 2 DAY)"}),
		rowsOf([]string{"", "T", "A"}, []string{"s", "T", "X"}, []string{"s", "T", "select"}))
	require.NoError(t, err)
	require.Equal(t, []policy{{"s.T", []string{"X", "select"}, "Due", 1}, {"T", []string{"A"}, "B", 2}}, all)
	require.Equal(t, "SELECT X, `select` FROM s.T WHERE Due <= @spanqueue_cutoff ORDER BY X, `select` LIMIT 5 OFFSET 2", all[0].expired(time.Now(), 5, 2).GetSql())
}
