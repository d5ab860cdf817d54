package tvf

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestScan(t *testing.T) {
	t.Parallel()
	receive, renew := Call{Receive, "Q"}, Call{Renew, "Q"}
	for sql, want := range map[string]Shape{
		"":         {},
		"SELECT 1": {Verb: Query},
		"select * from RECEIVE_Q(max_duration => '1s')":    {Verb: Query, Calls: []Call{receive}},
		"SELECT * FROM receive_Q ( )":                      {Verb: Query, Calls: []Call{receive}},
		"SELECT * FROM `RECEIVE_Q`()":                      {Verb: Query, Calls: []Call{receive}},
		"SELECT * FROM RECEIVE_Q/* */\n()":                 {Verb: Query, Calls: []Call{receive}},
		"/* x */ SELECT *\nFROM RenewLease_Q(a => [])":     {Verb: Query, Calls: []Call{renew}},
		"@{a=1} (SELECT 1)":                                {Verb: Query},
		"WITH a AS (SELECT 1) SELECT * FROM RECEIVE_Q()":   {Verb: Query, Calls: []Call{receive}},
		"SELECT * FROM RECEIVE_Q(), RENEWLEASE_Q()":        {Verb: Query, Calls: []Call{receive, renew}},
		"SELECT 'RECEIVE_Q(' -- RECEIVE_Q()":               {Verb: Query},
		"SELECT RECEIVE_Q FROM T":                          {Verb: Query, Reads: []string{"T"}},
		"SELECT * FROM RECEIVE_()":                         {Verb: Query},
		"INSERT INTO Q (Id) VALUES (1)":                    {Verb: Insert, Table: "Q"},
		"insert q (Id) VALUES (1)":                         {Verb: Insert, Table: "q"},
		"INSERT OR IGNORE INTO `Q` (Id) VALUES (1)":        {Verb: Insert, Table: "Q"},
		"INSERT OR UPDATE INTO Q (Id) VALUES (1)":          {Verb: InsertOrUpdate, Table: "Q"},
		"# c\nUPDATE Q SET Id = 1 WHERE TRUE":              {Verb: Update, Table: "Q"},
		"UPDATE s.Q SET Id = 1 WHERE TRUE":                 {Verb: Update, Table: "s.Q"},
		"delete from q where id=1 assert_rows_modified 1;": {Verb: Delete, Table: "q"},
		"DELETE Q WHERE X = 'UPDATE Q'":                    {Verb: Delete, Table: "Q"},
		"DELETE FROM Q WHERE Id IN (SELECT Id FROM RECEIVE_Q())": {
			Verb: Delete, Table: "Q", Calls: []Call{receive}},
		"SELECT 'unfinished":          {Verb: Query},
		"SELECT * FROM RECEIVE_Q('''": {Verb: Query, Calls: []Call{receive}},
		"CREATE TABLE T":              {},
	} {
		require.Equal(t, want, Scan(sql), sql)
	}
}

func TestScanFindsTables(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][]string{
		"SELECT A, B FROM Q":                             {"Q"},
		"select `Id` from `Q` as X where X.Id in (1, 2)": {"Q"},
		"SELECT Q.Id FROM Q, (SELECT 1 AS B) , S.T u":    {"Q", "S.T"},
		"SELECT 1 FROM A JOIN@{JOIN_METHOD=HASH_JOIN} B ON A.X = B.X, C LEFT OUTER JOIN D USING (X, Y)": {"A", "B", "C", "D"},
		"SELECT * FROM Q@{FORCE_INDEX=I} WHERE X > ANY (SELECT MAX(Y) FROM Inner1, Inner2)":             {"Q", "Inner1", "Inner2"},
		"SELECT * FROM (A JOIN B ON TRUE), UNNEST(@list) WITH OFFSET":                                   {"A", "B"},
		"SELECT (SELECT COUNT(*) FROM Q), Other, F(G, H) FROM UNNEST([1, 2])":                           {"Q"},
		"WITH w AS (SELECT * FROM Q) SELECT w.Id FROM w UNION ALL SELECT X, Y FROM R":                   {"Q", "w", "R"},
		"INSERT INTO T (A, B) SELECT A, B FROM Q THEN RETURN A, B":                                      {"Q"},
		"DELETE FROM Q WHERE Id IN (SELECT Id FROM R)":                                                  {"R"},
		"UPDATE T SET A = (SELECT B FROM Q), C = D WHERE TRUE":                                          {"Q"},
		"SELECT * FROM RECEIVE_Q(max_duration => a, b => c), Q":                                         {"Q"},
		"SELECT 'FROM Q' -- FROM Q":                                                                     nil,
		"SELECT @@x, Q FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'Q'":                           {"INFORMATION_SCHEMA.TABLES"},
		"FROM Q |> WHERE Id > 1": {"Q"},
	} {
		require.Equal(t, want, Scan(sql).Reads, sql)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]Statement{
		"SELECT * FROM RECEIVE_Q()": {Call: Call{Receive, "Q"}, List: []Item{{Star: true}}},
		"select id, `Payload` p, q.Id, 1+1 as two FROM receive_Q(max_duration=>'5s') AS q where Id > 1 -- x\n ;": {
			Call: Call{Receive, "Q"}, Alias: "q", Where: "Id > 1",
			List: []Item{{Column: "id", SQL: "id"}, {Column: "Payload", SQL: "`Payload` p"}, {Column: "Id", SQL: "q.Id"}, {SQL: "1+1 as two"}}},
		"SELECT q.* EXCEPT (Payload) FROM RENEWLEASE_Q(lease_tokens => ['a', @b]) q;;": {
			Call: Call{Renew, "Q"}, Alias: "q", List: []Item{{Star: true, Except: []string{"Payload"}}}},
		"@{USE_ADDITIONAL_PARALLELISM=TRUE} SELECT ALL Id FROM `RECEIVE_Q`()": {
			Call: Call{Receive, "Q"}, List: []Item{{Column: "Id", SQL: "Id"}}},
		"SELECT q FROM RECEIVE_Q() AS q WHERE Id IN UNNEST(@ids)": {
			Call: Call{Receive, "Q"}, Alias: "q", Where: "Id IN UNNEST(@ids)", List: []Item{{SQL: "q"}}},
	} {
		got, err := Parse(sql)
		require.NoError(t, err, sql)
		got.arguments = nil
		require.Equal(t, want, *got, sql)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for sql, reason := range map[string]string{
		"SELECT DISTINCT Id FROM RECEIVE_Q()":                               "DISTINCT",
		"SELECT Id FROM RECEIVE_Q() ORDER BY Id":                            "ORDER BY",
		"SELECT Id FROM RECEIVE_Q() LIMIT 1":                                "LIMIT",
		"SELECT Id FROM RECEIVE_Q() GROUP BY Id":                            "GROUP BY",
		"SELECT Id FROM RECEIVE_Q() JOIN T USING (Id)":                      "a join",
		"SELECT Id FROM RECEIVE_Q(), T":                                     "a join",
		"SELECT Id FROM RECEIVE_Q() q JOIN T USING (Id)":                    "a join",
		"SELECT Id FROM RECEIVE_Q() UNION ALL SELECT 1":                     "set operation",
		"SELECT Id FROM (SELECT * FROM RECEIVE_Q())":                        "subquery",
		"WITH a AS (SELECT 1) SELECT Id FROM RECEIVE_Q()":                   "WITH",
		"SELECT Id FROM RECEIVE_Q() WHERE Id IN (SELECT 1)":                 "a subquery",
		"SELECT (SELECT 1) FROM RECEIVE_Q()":                                "a subquery",
		"SELECT EXISTS (SELECT 1) FROM RECEIVE_Q()":                         "a subquery",
		"SELECT ARRAY(SELECT 1) FROM RECEIVE_Q()":                           "a subquery",
		"SELECT Id FROM RECEIVE_Q() TABLESAMPLE BERNOULLI (1 PERCENT)":      "TABLESAMPLE",
		"SELECT * FROM RENEWLEASE_Q(['a'], ['b'])":                          "named arguments only",
		"SELECT * FROM RENEWLEASE_Q(['a'], lease_tokens => ['b'])":          "twice",
		"SELECT Id FROM RECEIVE_Q('5s')":                                    "named arguments only",
		"SELECT Id FROM RECEIVE_Q(max_duration => '1s', MAX_duration => 1)": "twice",
		"SELECT AS STRUCT Id FROM RECEIVE_Q()":                              "SELECT AS",
		"SELECT * REPLACE (1 AS Id) FROM RECEIVE_Q()":                       "REPLACE",
		"SELECT x.* FROM RECEIVE_Q()":                                       "names no row",
		"SELECT 1 FROM RECEIVE_Q(); SELECT 2":                               "one statement",
		"SELECT FROM RECEIVE_Q()":                                           "cannot be read",
		"SELECT 'x FROM RECEIVE_Q()":                                        "unfinished",
		"SELECT RECEIVE_Q()":                                                "without FROM",
		"SELECT RECEIVE_Q() FROM T":                                         "a join, subquery or table",
		"SELECT 1 FROM F(a => RECEIVE_Q())":                                 "not a function of a queue",
	} {
		_, err := Parse(sql)
		require.ErrorContains(t, err, reason, sql)
	}
	_, err := Parse("SELECT " + string(make([]byte, 0)) + repeat("NOT ", maxTokens) + "TRUE FROM RECEIVE_Q()")
	require.ErrorContains(t, err, "more than")
}

func repeat(s string, n int) string {
	b := make([]byte, 0, n*len(s))
	for range n {
		b = append(b, s...)
	}
	return string(b)
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m": time.Minute, "20m": 20 * time.Minute, " 5 S ": 5 * time.Second, "1 M": time.Minute,
		"1m30s": 90 * time.Second, "1 h 5 ms": time.Hour + 5*time.Millisecond, "1.5s": 1500 * time.Millisecond, "\t5\ns": 5 * time.Second,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", " ", "5", "s", "5x", "-5s", "0s", "5s5", "1..5s", "1e9s", "99999999999h", "5s,", "５s", "0.0000001ms"} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, "not a duration", text)
	}
}

func params(t *testing.T, values map[string]any, types map[string]*spannerpb.Type) Params {
	t.Helper()
	s, err := structpb.NewStruct(values)
	require.NoError(t, err)
	return Params{Values: s, Types: types}
}

func TestReceiveArguments(t *testing.T) {
	t.Parallel()
	str, i64 := &spannerpb.Type{Code: spannerpb.TypeCode_STRING}, &spannerpb.Type{Code: spannerpb.TypeCode_INT64}
	p := params(t, map[string]any{"d": "2s", "N": "7", "null": nil, "untyped": "3s", "b": true}, map[string]*spannerpb.Type{"D": str, "n": i64, "null": str})
	for call, want := range map[string]ReceiveArguments{
		"":                          {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize},
		"max_duration => '5s'":      {MaxDuration: 5 * time.Second, MaxBatchSize: DefaultMaxBatchSize},
		`MAX_DURATION => ("5s")`:    {MaxDuration: 5 * time.Second, MaxBatchSize: DefaultMaxBatchSize},
		"max_duration => @d":        {MaxDuration: 2 * time.Second, MaxBatchSize: DefaultMaxBatchSize},
		"max_duration => @untyped":  {MaxDuration: 3 * time.Second, MaxBatchSize: DefaultMaxBatchSize},
		"max_batch_size => @n":      {MaxDuration: DefaultMaxDuration, MaxBatchSize: 7},
		"max_batch_size => 0x10":    {MaxDuration: DefaultMaxDuration, MaxBatchSize: 16},
		"max_duration => @null":     {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize},
		"priority => 'high'":        {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize, Priority: "high"},
		"priority => 3":             {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize, Priority: "3"},
		"priority => NULL":          {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize},
		"max_batch_size => NULL":    {MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize},
		"max_duration => r'1m 1 s'": {MaxDuration: 61 * time.Second, MaxBatchSize: DefaultMaxBatchSize},
	} {
		s, err := Parse("SELECT * FROM RECEIVE_Q(" + call + ")")
		require.NoError(t, err, call)
		got, err := s.Receive(p)
		require.NoError(t, err, call)
		require.Equal(t, want, got, call)
	}
	for call, reason := range map[string]string{
		"maximum => '5s'":                          "has no argument maximum",
		"max_duration => 5":                        "type STRING",
		"max_duration => b'5s'":                    "type STRING",
		"max_duration => '5'":                      "not a duration",
		"max_duration => CONCAT('5', 's')":         "literal or query parameter",
		"max_duration => @n":                       "is INT64",
		"max_duration => @b":                       "is not a STRING",
		"max_duration => @missing":                 "no value is given",
		"max_batch_size => '5'":                    "type INT64",
		"max_batch_size => 0":                      "1 or more",
		"max_batch_size => -1":                     "1 or more",
		"max_batch_size => 99999999999999999999":   "not an INT64",
		"max_batch_size => -(1)":                   "literal or query parameter",
		"max_batch_size => @d":                     "is STRING",
		"priority => 1.5":                          "literal or query parameter",
		"max_duration => '5s', lease_tokens => []": "has no argument lease_tokens",
	} {
		s, err := Parse("SELECT * FROM RECEIVE_Q(" + call + ")")
		require.NoError(t, err, call)
		_, err = s.Receive(p)
		require.ErrorContains(t, err, reason, call)
	}
}

func TestLeaseTokens(t *testing.T) {
	t.Parallel()
	list := &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_STRING}}
	p := params(t, map[string]any{"t": "c", "ts": []any{"d", nil, "e"}, "null": nil, "bad": []any{true}},
		map[string]*spannerpb.Type{"t": {Code: spannerpb.TypeCode_STRING}, "ts": list, "null": list})
	for call, want := range map[string][]string{
		"lease_tokens => ['a', \"b\", @t]":     {"a", "b", "c"},
		"lease_tokens => ARRAY<STRING>['a']":   {"a"},
		"lease_tokens => ARRAY[NULL, 'a']":     {"a"},
		"LEASE_TOKENS => (@ts)":                {"d", "e"},
		"lease_tokens => @null":                nil,
		"lease_tokens => []":                   nil,
		"lease_tokens => [ 'a' , /* , */ 'b']": {"a", "b"},
		"['a', @t]":                            {"a", "c"},
		"@ts":                                  {"d", "e"},
	} {
		s, err := Parse("SELECT * FROM RENEWLEASE_Q(" + call + ")")
		require.NoError(t, err, call)
		got, err := s.LeaseTokens(p)
		require.NoError(t, err, call)
		require.Equal(t, want, got, call)
	}
	for call, reason := range map[string]string{
		"":                                      "needs the argument lease_tokens",
		"tokens => []":                          "has no argument tokens",
		"lease_tokens => 'a'":                   "array of strings",
		"lease_tokens => NULL":                  "array of strings",
		"lease_tokens => [1]":                   "type STRING",
		"lease_tokens => ARRAY<INT64>[]":        "ARRAY<STRING>",
		"lease_tokens => @t":                    "is STRING",
		"lease_tokens => @bad":                  "is not a STRING",
		"lease_tokens => @missing":              "no value is given",
		"lease_tokens => [@missing]":            "no value is given",
		"lease_tokens => [], max_duration => 1": "has no argument max_duration",
	} {
		s, err := Parse("SELECT * FROM RENEWLEASE_Q(" + call + ")")
		require.NoError(t, err, call)
		_, err = s.LeaseTokens(p)
		require.ErrorContains(t, err, reason, call)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	columns := []Column{{Name: "Id"}, {Name: "Secret", Hidden: true}, {Name: "Payload"}}
	for list, want := range map[string][]Output{
		"*":                  {{0, "Id"}, {2, "Payload"}},
		"* EXCEPT (id)":      {{2, "Payload"}},
		"r.*, secret":        {{0, "Id"}, {2, "Payload"}, {1, "secret"}},
		"Id AS x, Id + 1, y": {{0, "Id AS x"}, {-1, "Id + 1"}, {-1, "y"}},
	} {
		s, err := Parse("SELECT " + list + " FROM RECEIVE_Q() r")
		require.NoError(t, err, list)
		got, err := s.Outputs(columns)
		require.NoError(t, err, list)
		require.Equal(t, want, got, list)
	}
	for list, reason := range map[string]string{"* EXCEPT (x)": "no column x", "* EXCEPT (Id, Payload)": "no column left"} {
		s, err := Parse("SELECT " + list + " FROM RECEIVE_Q() r")
		require.NoError(t, err, list)
		_, err = s.Outputs(columns)
		require.ErrorContains(t, err, reason, list)
	}
}

// FuzzParse looks for texts that end the process, and holds Scan and Parse against each other.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"SELECT * FROM RECEIVE_Q(max_duration => '5s', max_batch_size => 10) AS q WHERE q.Id = @id;",
		"select Id, Payload || b'x' as p from `RENEWLEASE_Q`(lease_tokens => ['a', @b, NULL])",
		"@{h=1} SELECT q.* EXCEPT (Id) FROM RECEIVE_Q(priority => 1, max_duration => (\"1 M\")) q",
		"DELETE FROM Q WHERE Id = @id ASSERT_ROWS_MODIFIED 1 -- RECEIVE_Q(",
		"SELECT '''RECEIVE_Q(''' /* RECEIVE_Q() */ # x",
		"INSERT OR UPDATE INTO `a`.b (c) SELECT * FROM RECEIVE_Q()",
		"SELECT ((((1)))) FROM RECEIVE_Q() WHERE ((NOT (NOT TRUE)))",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		shape := Scan(sql)
		s, err := Parse(sql)
		if err != nil {
			return
		}
		require.Contains(t, shape.Calls, s.Call)
		_, _ = s.Receive(Params{})
		_, _ = s.LeaseTokens(Params{})
		_, _ = s.Outputs([]Column{{Name: "Id"}})
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"5s", " 1 M ", "1h2m3s4ms", "1.5s", "9999999999999999999h", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err == nil {
			require.Positive(t, d)
			require.LessOrEqual(t, d, maxDuration)
		}
	})
}
