package front_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// whole notes an answer with all that is in it, but for what two databases cannot have in common.
func (s *transcript) whole(what string, m proto.Message, err error) {
	if err != nil || m == nil || !m.ProtoReflect().IsValid() {
		s.note(what, nil, err)
		return
	}
	m = proto.Clone(m)
	switch m := m.(type) {
	case *spannerpb.ResultSet:
		withoutTransaction(m.GetMetadata())
	case *spannerpb.ExecuteBatchDmlResponse:
		for _, rs := range m.GetResultSets() {
			withoutTransaction(rs.GetMetadata())
		}
	case *spannerpb.CommitResponse:
		m.CommitTimestamp = nil
	case *databasepb.Database:
		m.CreateTime = nil
	case *longrunningpb.Operation:
		m.Name = m.Name[:strings.LastIndex(m.Name, "/")]
		m.Metadata, m.Result = nil, nil // they have times; the fronts's tests look at them
	}
	s.lines = append(s.lines, fmt.Sprintf("%s: OK %s", what, prototext.MarshalOptions{}.Format(m)))
}

func withoutTransaction(m *spannerpb.ResultSetMetadata) {
	if m != nil && m.Transaction != nil {
		m.Transaction = &spannerpb.Transaction{}
	}
}

func (s *transcript) wholeSQL(what string, req *spannerpb.ExecuteSqlRequest) *spannerpb.ResultSet {
	req.Session, req.Seqno = s.session, s.seqno.Add(1)
	rs, err := s.ExecuteSql(s.ctx(), req)
	s.whole(what, rs, err)
	parts, err := all(s.ExecuteStreamingSql(s.ctx(), req))
	var joined []string
	for _, p := range parts {
		withoutTransaction(p.GetMetadata())
		p.ResumeToken = nil
		joined = append(joined, prototext.MarshalOptions{}.Format(p))
	}
	s.note(what+", streaming: "+strings.Join(joined, " | "), nil, err)
	return rs
}

func (s *transcript) query(sql string) { s.wholeSQL(sql, &spannerpb.ExecuteSqlRequest{Sql: sql}) }

func (s *transcript) wholeRead(what string, req *spannerpb.ReadRequest) {
	req.Session = s.session
	rs, err := s.Read(s.ctx(), req)
	s.whole(what, rs, err)
	parts, err := all(s.StreamingRead(s.ctx(), req))
	var joined []string
	for _, p := range parts {
		p.ResumeToken = nil
		joined = append(joined, prototext.MarshalOptions{}.Format(p))
	}
	s.note(what+", streaming: "+strings.Join(joined, " | "), nil, err)
}

func (s *transcript) wholeApply(what string, ms ...*spannerpb.Mutation) {
	r, err := s.Commit(s.ctx(), &spannerpb.CommitRequest{Session: s.session, ReturnCommitStats: true, Mutations: ms,
		Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite}})
	s.whole(what, r, err)
}

func (s *transcript) ddl(what string, statements ...string) {
	op, err := s.admin().UpdateDatabaseDdl(s.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: s.database, Statements: statements})
	s.whole(what, op, err)
	shown, err := s.admin().GetDatabaseDdl(s.ctx(), &databasepb.GetDatabaseDdlRequest{Database: s.database})
	s.whole("  then", shown, err)
}

func text(parts ...string) *structpb.ListValue {
	l := &structpb.ListValue{}
	for _, p := range parts {
		l.Values = append(l.Values, structpb.NewStringValue(p))
	}
	return l
}

func writing(table string, columns []string, rows ...*structpb.ListValue) *spannerpb.Mutation_Write {
	return &spannerpb.Mutation_Write{Table: table, Columns: columns, Values: rows}
}

var wholeScripts = map[string]func(s *transcript){
	"types": func(s *transcript) {
		s.ddl("create", `CREATE TABLE Types (Id INT64 NOT NULL, B BOOL, I INT64, F FLOAT64, S STRING(MAX), Y BYTES(MAX), D DATE, T TIMESTAMP, N NUMERIC, J JSON, A ARRAY<STRING(MAX)>, Z ARRAY<INT64>) PRIMARY KEY (Id)`)
		columns := []string{"Id", "B", "I", "F", "S", "Y", "D", "T", "N", "J", "A", "Z"}
		list := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("x"), structpb.NewNullValue()}})
		full := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("1"), structpb.NewBoolValue(true), structpb.NewStringValue("-9223372036854775808"),
			structpb.NewStringValue("NaN"), structpb.NewStringValue("é\x00"), structpb.NewStringValue("AP8="), structpb.NewStringValue("2024-02-29"),
			structpb.NewStringValue("2024-01-01T00:00:00.123456789Z"), structpb.NewStringValue("1.5"), structpb.NewStringValue(`{"b": 9007199254740993, "a": 1}`), list, structpb.NewListValue(&structpb.ListValue{})}}
		null := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("2")}}
		for range columns[1:] {
			null.Values = append(null.Values, structpb.NewNullValue())
		}
		s.wholeApply("insert", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("Types", columns, full, null)}})
		s.query("SELECT * FROM Types ORDER BY Id")
		s.wholeRead("read", &spannerpb.ReadRequest{Table: "Types", Columns: columns, KeySet: &spannerpb.KeySet{All: true}})
		s.query("SELECT ARRAY(SELECT AS STRUCT Id, S FROM Types ORDER BY Id), STRUCT(1 AS a, 'x' AS b).b")
		s.wholeApply("a wrong type", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("Types", []string{"Id", "B"}, text("3", "yes"))}})
	},
	"parameters": func(s *transcript) {
		str, i64 := &spannerpb.Type{Code: spannerpb.TypeCode_STRING}, &spannerpb.Type{Code: spannerpb.TypeCode_INT64}
		params := func(fields map[string]*structpb.Value) *structpb.Struct { return &structpb.Struct{Fields: fields} }
		for _, sql := range []string{"SELECT @a, @B", "SELECT @a || 'x' AS c WHERE @b > 1", "SELECT @missing"} {
			s.wholeSQL(sql, &spannerpb.ExecuteSqlRequest{Sql: sql, Params: params(map[string]*structpb.Value{"a": structpb.NewStringValue("x"), "b": structpb.NewStringValue("7")}), ParamTypes: map[string]*spannerpb.Type{"a": str, "b": i64}})
		}
		s.wholeSQL("untyped", &spannerpb.ExecuteSqlRequest{Sql: "SELECT @a", Params: params(map[string]*structpb.Value{"a": structpb.NewStringValue("x")})})
		s.wholeSQL("array of structs", &spannerpb.ExecuteSqlRequest{Sql: "SELECT x.k, x.v FROM UNNEST(@a) AS x ORDER BY 1", Params: params(map[string]*structpb.Value{"a": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewListValue(text("b", "1")), structpb.NewListValue(text("a", "2"))}})}),
			ParamTypes: map[string]*spannerpb.Type{"a": {Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_STRUCT, StructType: &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{{Name: "k", Type: str}, {Name: "v", Type: i64}}}}}}})
		s.wholeSQL("wrong value", &spannerpb.ExecuteSqlRequest{Sql: "SELECT @a", Params: params(map[string]*structpb.Value{"a": structpb.NewBoolValue(true)}), ParamTypes: map[string]*spannerpb.Type{"a": i64}})
	},
	"query modes and options": func(s *transcript) {
		s.wholeSQL("plan", &spannerpb.ExecuteSqlRequest{Sql: "SELECT Id FROM T", QueryMode: spannerpb.ExecuteSqlRequest_PLAN})
		s.wholeSQL("plan of DML", &spannerpb.ExecuteSqlRequest{Sql: insertSQL("a"), QueryMode: spannerpb.ExecuteSqlRequest_PLAN, Transaction: byID(s.begin(readWrite))})
		s.wholeSQL("options", &spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", QueryOptions: &spannerpb.ExecuteSqlRequest_QueryOptions{OptimizerVersion: "1"},
			RequestOptions: &spannerpb.RequestOptions{Priority: spannerpb.RequestOptions_PRIORITY_LOW, RequestTag: "tag"}})
		s.wholeSQL("a tag in a single use", &spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", RequestOptions: &spannerpb.RequestOptions{TransactionTag: "tag"}})
		s.wholeSQL("directed", &spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", DirectedReadOptions: &spannerpb.DirectedReadOptions{}})
	},
	"queries that fail": func(s *transcript) {
		for _, sql := range []string{"", ";", "SELECT", "SELECT 1; SELECT 2", "SELECT * FROM Nope", "SELECT 1/0", "SELECT Nope FROM T", "SELECT * FROM NOPE(1)", "SELECT ERROR('x')",
			"SELECT 1/(3-x) FROM UNNEST([1, 2, 3]) AS x ORDER BY 1", "INSERT INTO T (Id) VALUES ('a')", "CREATE TABLE X (Id INT64) PRIMARY KEY (Id)", "SELECT 'unfinished", "\x00", "SELECT * FROM RECEIVE_Nope(max_duration => '1s')"} {
			s.query(sql)
		}
	},
	"returning": func(s *transcript) {
		tx := s.begin(readWrite)
		for _, sql := range []string{"INSERT INTO T (Id, N) VALUES ('a', 1), ('b', 2) THEN RETURN Id, N + 1 AS more", "UPDATE T SET N = 7 WHERE Id = 'a' THEN RETURN WITH ACTION *", "DELETE FROM T WHERE N > 1 THEN RETURN Id", "INSERT OR UPDATE INTO T (Id, N) VALUES ('c', 3) THEN RETURN N"} {
			rs, err := s.sql(s.ctx(), byID(tx), sql)
			s.whole(sql, rs, err)
		}
		b, err := s.batch(s.ctx(), byID(tx), "INSERT INTO T (Id) VALUES ('x') THEN RETURN Id", "DELETE FROM T WHERE TRUE")
		s.whole("batch", b, err)
		s.doCommit("commit", tx)
		s.rows()
	},
	"reads": func(s *transcript) {
		s.ddl("index", "CREATE INDEX ByN ON T (N DESC)", "CREATE UNIQUE NULL_FILTERED INDEX One ON T (N, Id) STORING (Id)")
		s.ddl("index", "CREATE INDEX ByN ON T (N DESC)")
		s.wholeApply("setup", insert("a"), insert("b"), insert("c"))
		keys := func(k ...*structpb.ListValue) *spannerpb.KeySet { return &spannerpb.KeySet{Keys: k} }
		read := func(what string, r *spannerpb.ReadRequest) { s.wholeRead(what, r) }
		read("keys", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id", "N"}, KeySet: keys(text("a"), text("a"), text("nobody"), text("c"))})
		read("by index", &spannerpb.ReadRequest{Table: "T", Index: "ByN", Columns: []string{"N", "Id"}, KeySet: keys(text("1")), Limit: 2})
		read("a range", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{Ranges: []*spannerpb.KeyRange{{StartKeyType: &spannerpb.KeyRange_StartOpen{StartOpen: text("a")}, EndKeyType: &spannerpb.KeyRange_EndClosed{EndClosed: text("c")}}}}})
		read("limit", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}, Limit: 1})
		read("nothing", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{}})
		read("no key set", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}})
		read("no columns", &spannerpb.ReadRequest{Table: "T", KeySet: &spannerpb.KeySet{All: true}})
		read("no table", &spannerpb.ReadRequest{Table: "Nope", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}})
		read("no column", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Nope"}, KeySet: &spannerpb.KeySet{All: true}})
		read("no index", &spannerpb.ReadRequest{Table: "T", Index: "Nope", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}})
		read("wrong key", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: keys(text("a", "b"))})
		read("negative limit", &spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}, Limit: -1})
	},
	"mutations": func(s *transcript) {
		s.wholeApply("insert", insert("a"))
		s.wholeApply("insert again", insert("b"), insert("a"))
		s.wholeApply("update", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: row("a")}})
		s.wholeApply("update nobody", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: row("nobody")}})
		s.wholeApply("replace", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Replace{Replace: writing("T", []string{"Id"}, text("a"))}})
		s.wholeApply("upsert", upsert("b"), upsert("b"))
		s.wholeApply("delete", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{text("b"), text("nobody")}}}}})
		s.wholeApply("none")
		s.wholeApply("no columns", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "T", Values: []*structpb.ListValue{text("x")}}}})
		s.wholeApply("too few values", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("T", []string{"Id", "N"}, text("x"))}})
		s.wholeApply("a column twice", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("T", []string{"Id", "id"}, text("x", "y"))}})
		s.wholeApply("too long", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("T", []string{"Id"}, text(strings.Repeat("x", 37)))}})
		s.wholeApply("no key", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("T", []string{"N"}, text("1"))}})
		s.wholeApply("delete everything", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: &spannerpb.KeySet{All: true}}}})
		s.rows()
	},
	"constraints": func(s *transcript) {
		s.ddl("create", "CREATE TABLE P (Id INT64 NOT NULL, U STRING(10), CONSTRAINT Small CHECK (Id < 100)) PRIMARY KEY (Id)", "CREATE UNIQUE INDEX U ON P (U)",
			"CREATE TABLE C (Id INT64 NOT NULL, N INT64 NOT NULL DEFAULT (7)) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT P ON DELETE NO ACTION",
			"CREATE TABLE F (Id INT64 NOT NULL, P INT64, G INT64 AS (P + 1) STORED, FOREIGN KEY (P) REFERENCES P (Id)) PRIMARY KEY (Id)")
		p := func(id, u string) *spannerpb.Mutation {
			return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("P", []string{"Id", "U"}, text(id, u))}}
		}
		s.wholeApply("parent", p("1", "x"))
		s.wholeApply("check", p("100", "y"))
		s.wholeApply("unique", p("2", "x"))
		child := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("C", []string{"Id"}, text("1"))}}
		orphan := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("C", []string{"Id"}, text("5"))}}
		s.wholeApply("child", child)
		s.wholeApply("orphan", orphan)
		s.wholeApply("delete the parent", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "P", KeySet: &spannerpb.KeySet{All: true}}}})
		s.wholeApply("foreign key", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("F", []string{"Id", "P"}, text("1", "9"))}})
		s.wholeApply("generated", &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("F", []string{"Id", "P"}, text("1", "1"))}})
		s.query("SELECT * FROM F")
		s.query("SELECT * FROM C")
		for _, sql := range []string{"INSERT INTO P (Id, U) VALUES (3, 'x')", "INSERT INTO P (Id) VALUES (300)", "INSERT INTO C (Id) VALUES (9)", "DELETE FROM P WHERE Id = 1", "UPDATE F SET P = 77 WHERE Id = 1", "UPDATE F SET G = 1 WHERE Id = 1"} {
			tx := s.begin(readWrite)
			rs, err := s.sql(s.ctx(), byID(tx), sql)
			s.whole(sql, rs, err)
			s.doCommit("  commit", tx)
			s.doRollback("  rollback", tx)
		}
	},
	"schema changes": func(s *transcript) {
		s.ddl("view", "CREATE VIEW V SQL SECURITY INVOKER AS SELECT T.Id FROM T")
		s.ddl("sequence", `CREATE SEQUENCE Seq OPTIONS (sequence_kind = 'bit_reversed_positive')`)
		s.ddl("column", "ALTER TABLE T ADD COLUMN S STRING(10) NOT NULL DEFAULT ('x')")
		s.ddl("wider", "ALTER TABLE T ALTER COLUMN S STRING(MAX) NOT NULL DEFAULT ('y')")
		s.ddl("policy", "ALTER TABLE T ADD COLUMN Seen TIMESTAMP", "ALTER TABLE T ADD ROW DELETION POLICY (OLDER_THAN(Seen, INTERVAL 3000 DAY))")
		s.ddl("change stream", "CREATE CHANGE STREAM Everything FOR ALL")
		s.ddl("exists", "CREATE TABLE T (Id INT64) PRIMARY KEY (Id)")
		s.ddl("exists, if not", "CREATE TABLE IF NOT EXISTS T (Id INT64) PRIMARY KEY (Id)")
		s.ddl("not there", "DROP TABLE Nope")
		s.ddl("not there, if", "DROP TABLE IF EXISTS Nope")
		s.ddl("syntax", "CREATE TABEL X")
		s.ddl("in use", "ALTER TABLE T DROP COLUMN Id")
		s.ddl("half", "CREATE TABLE Half (Id INT64) PRIMARY KEY (Id)", "DROP TABLE Nope")
		s.ddl("none")
		s.ddl("away", "DROP CHANGE STREAM Everything", "DROP VIEW V", "DROP SEQUENCE Seq")
	},
	"administration": func(s *transcript) {
		admin, instances := s.admin(), instancepb.NewInstanceAdminClient(s.conn)
		instance := s.database[:strings.LastIndex(s.database, "/databases/")]
		d, err := admin.GetDatabase(s.ctx(), &databasepb.GetDatabaseRequest{Name: s.database})
		s.whole("get", d, err)
		d, err = admin.GetDatabase(s.ctx(), &databasepb.GetDatabaseRequest{Name: s.database + "2"})
		s.whole("get another", d, err)
		op, err := admin.CreateDatabase(s.ctx(), &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE test"})
		s.whole("exists", op, err)
		op, err = admin.CreateDatabase(s.ctx(), &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE TABLE x"})
		s.whole("no database", op, err)
		op, err = admin.CreateDatabase(s.ctx(), &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE `other`", ExtraStatements: []string{"CREATE TABEL X"}})
		s.whole("syntax", op, err)
		op, err = admin.CreateDatabase(s.ctx(), &databasepb.CreateDatabaseRequest{Parent: instance + "x", CreateStatement: "CREATE DATABASE other"})
		s.whole("no instance", op, err)
		op, err = admin.CreateDatabase(s.ctx(), &databasepb.CreateDatabaseRequest{})
		s.whole("nothing", op, err)
		list, err := admin.ListDatabases(s.ctx(), &databasepb.ListDatabasesRequest{Parent: instance})
		s.note(fmt.Sprintf("%d databases", len(list.GetDatabases())), nil, err)
		op, err = admin.UpdateDatabaseDdl(s.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: s.database + "2", Statements: []string{"DROP TABLE T"}})
		s.whole("DDL elsewhere", op, err)
		policy, err := admin.GetIamPolicy(s.ctx(), &iampb.GetIamPolicyRequest{Resource: s.database})
		s.whole("IAM", policy, err)
		backups, err := admin.ListBackups(s.ctx(), &databasepb.ListBackupsRequest{Parent: instance})
		s.whole("backups", backups, err)
		got, err := longrunningpb.NewOperationsClient(s.conn).GetOperation(s.ctx(), &longrunningpb.GetOperationRequest{Name: s.database + "/operations/nope"})
		s.whole("operation", got, err)
		i, err := instances.GetInstance(s.ctx(), &instancepb.GetInstanceRequest{Name: instance + "x"})
		s.whole("instance", i, err)
		configs, err := instances.ListInstanceConfigs(s.ctx(), &instancepb.ListInstanceConfigsRequest{Parent: "projects/p"})
		s.whole("configs", configs, err)
		_, err = admin.DropDatabase(s.ctx(), &databasepb.DropDatabaseRequest{Database: s.database + "2"})
		s.note("drop another", nil, err)
	},
	"information schema": func(s *transcript) {
		for _, sql := range []string{
			"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ''",
			"SELECT column_name, spanner_type, is_nullable FROM information_schema.columns WHERE table_name = 'T' ORDER BY ordinal_position",
			"SELECT index_name FROM information_schema.indexes WHERE table_name = 'T'",
		} {
			s.query(sql)
		}
	},
}

// A queue somewhere in the database changes nothing for the rest of it.
func TestParityOfWholeAnswers(t *testing.T) {
	t.Parallel()
	const queue = "CREATE QUEUE Somewhere (Id INT64 NOT NULL, Payload JSON NOT NULL) PRIMARY KEY (Id)"
	for name, script := range wholeScripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(bare bool, ddl ...string) []string {
				db := emulatortest.Database(t, append([]string{table}, ddl...)...)
				addr := db.Endpoint()
				if bare {
					addr = db.Emulator().BackendAddr()
				}
				s := &transcript{raw: newRaw(t, addr, db.Name)}
				script(s)
				instance := db.Name[:strings.LastIndex(db.Name, "/databases/")]
				for i := range s.lines {
					for _, own := range [][2]string{{s.session, "SESSION"}, {s.database, "DATABASE"}, {instance, "INSTANCE"}, {queue, ""}} {
						s.lines[i] = strings.ReplaceAll(s.lines[i], own[0], own[1])
					}
				}
				return s.lines
			}
			bare := run(true)
			require.NotEmpty(t, bare)
			require.Equal(t, bare, run(false))
			if name != "information schema" && name != "schema changes" && name != "reads" && name != "types" && name != "constraints" { // those show the queue
				require.Equal(t, bare, run(false, queue))
			}
		})
	}
}
