package front_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// transcript is what a client saw.
type transcript struct {
	*raw
	lines []string
}

func (s *transcript) note(what string, m proto.Message, err error) {
	if err != nil {
		st := status.Convert(err)
		s.lines = append(s.lines, fmt.Sprintf("%s: %v %q", what, st.Code(), st.Message()))
		return
	}
	s.lines = append(s.lines, fmt.Sprintf("%s: OK %s", what, shown(m)))
}

// shown is a message without what two databases cannot have in common.
func shown(m proto.Message) string {
	switch m := m.(type) {
	case *spannerpb.ResultSet:
		return fmt.Sprintf("%d rows, %s, tx %v, time %v", len(m.GetRows()), m.GetStats(), len(m.GetMetadata().GetTransaction().GetId()) > 0, m.GetMetadata().GetTransaction().GetReadTimestamp() != nil)
	case *spannerpb.ExecuteBatchDmlResponse:
		return fmt.Sprintf("%d results, %s", len(m.GetResultSets()), m.GetStatus())
	case *spannerpb.CommitResponse:
		return fmt.Sprintf("time %v, %s", m.GetCommitTimestamp() != nil, m.GetCommitStats())
	case *spannerpb.Transaction:
		return fmt.Sprintf("id %v, time %v", len(m.GetId()) > 0, m.GetReadTimestamp() != nil)
	case *spannerpb.PartitionResponse:
		return fmt.Sprintf("partitions %v, id %v, time %v", len(m.GetPartitions()) > 0, len(m.GetTransaction().GetId()) > 0, m.GetTransaction().GetReadTimestamp() != nil)
	case nil:
		return ""
	}
	return string(m.ProtoReflect().Descriptor().Name())
}

func (s *transcript) doSQL(what string, sel *spannerpb.TransactionSelector, sql string) *spannerpb.ResultSet {
	rs, err := s.sql(s.ctx(), sel, sql)
	s.note(what, rs, err)
	return rs
}

func (s *transcript) doStream(what string, sel *spannerpb.TransactionSelector, sql string) {
	parts, err := all(s.ExecuteStreamingSql(s.ctx(), &spannerpb.ExecuteSqlRequest{Session: s.session, Transaction: sel, Sql: sql, Seqno: s.seqno.Add(1)}))
	whole := &spannerpb.ResultSet{}
	for _, p := range parts {
		if p.GetMetadata() != nil {
			whole.Metadata = p.GetMetadata()
		}
		if p.GetStats() != nil {
			whole.Stats = p.GetStats()
		}
		for _, v := range p.GetValues() {
			whole.Rows = append(whole.Rows, &structpb.ListValue{Values: []*structpb.Value{v}})
		}
	}
	s.note(what, whole, err)
}

func (s *transcript) doBatch(what string, sel *spannerpb.TransactionSelector, statements ...string) *spannerpb.ExecuteBatchDmlResponse {
	r, err := s.batch(s.ctx(), sel, statements...)
	s.note(what, r, err)
	return r
}

func (s *transcript) doCommit(what string, tx []byte, ms ...*spannerpb.Mutation) {
	r, err := s.commit(s.ctx(), tx, ms...)
	s.note(what, r, err)
}

func (s *transcript) doRollback(what string, tx []byte) {
	var none proto.Message
	s.note(what, none, s.rollback(s.ctx(), tx))
}

func (s *transcript) rows() { s.doSQL("rows", nil, "SELECT Id FROM T") }

// scripts are what both must answer in the same way. Each gets a fresh database and session.
var scripts = map[string]func(s *transcript){
	"asserted delete, DML": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doSQL("insert", byID(tx), insertSQL("a"))
		s.doSQL("miss", byID(tx), missSQL)
		s.doSQL("hit", byID(tx), "DELETE FROM T WHERE Id = 'a' ASSERT_ROWS_MODIFIED 1")
		s.doSQL("miss again", byID(tx), "DELETE FROM T WHERE Id = 'a' ASSERT_ROWS_MODIFIED 1")
		s.doSQL("still open", byID(tx), insertSQL("b"))
		s.doCommit("commit", tx, insert("c"))
		s.rows()
	},
	"asserted delete, streaming DML": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doStream("insert", byID(tx), insertSQL("a"))
		s.doStream("miss", byID(tx), missSQL)
		s.doStream("hit", byID(tx), "DELETE FROM T WHERE Id = 'a' ASSERT_ROWS_MODIFIED 1")
		s.doStream("still open", byID(tx), insertSQL("b"))
		s.doCommit("commit", tx)
		s.rows()
	},
	"asserted delete, batch DML": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doBatch("miss between", byID(tx), insertSQL("a"), missSQL, insertSQL("never"))
		s.doBatch("miss first", byID(tx), missSQL, insertSQL("never"))
		s.doBatch("hit", byID(tx), "DELETE FROM T WHERE Id = 'a' ASSERT_ROWS_MODIFIED 1", insertSQL("b"))
		s.doCommit("commit", tx, insert("c"))
		s.rows()
	},
	"batch DML, odd ones": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doBatch("empty", byID(tx))
		s.doBatch("a query", byID(tx), "SELECT 1")
		s.doBatch("syntax", byID(tx), insertSQL("a"), "DELEXTE")
		s.doCommit("commit", tx)
		s.doBatch("empty, no transaction", nil)
		s.doBatch("read-only", begins(strong), "DELETE FROM T WHERE TRUE")
		s.doBatch("single use", once(strong), "DELETE FROM T WHERE TRUE")
		s.doBatch("partitioned", byID(s.begin(partDML)), "DELETE FROM T WHERE TRUE")
		s.rows()
	},
	"inline begins": func(s *transcript) {
		rs := s.doSQL("DML", begins(readWrite), insertSQL("a"))
		s.doCommit("commit", rs.GetMetadata().GetTransaction().GetId())
		rs = s.doSQL("query", begins(readWrite), "SELECT Id FROM T")
		s.doCommit("commit", rs.GetMetadata().GetTransaction().GetId(), insert("b"))
		b := s.doBatch("batch", begins(readWrite), insertSQL("c"), insertSQL("d"))
		s.doCommit("commit", b.GetResultSets()[0].GetMetadata().GetTransaction().GetId())
		b = s.doBatch("batch with a miss", begins(readWrite), insertSQL("e"), missSQL)
		s.doCommit("commit", b.GetResultSets()[0].GetMetadata().GetTransaction().GetId())
		read, err := s.Read(s.ctx(), readAll(s.raw, begins(readWrite)))
		s.note("read", read, err)
		s.doRollback("rollback", read.GetMetadata().GetTransaction().GetId())
		s.doSQL("no mode", begins(&spannerpb.TransactionOptions{}), "SELECT 1")
		s.rows()
	},
	"an inline begin that fails": func(s *transcript) { s.doSQL("syntax", begins(readWrite), "DELEXTE") },
	"after a commit": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doCommit("commit", tx, insert("a"))
		s.doCommit("again", tx, insert("b"))
		s.doSQL("query", byID(tx), "SELECT 1")
		s.doBatch("batch", byID(tx), insertSQL("c"))
		s.doRollback("rollback", tx)
		s.rows()
	},
	"after a rollback": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doSQL("insert", byID(tx), insertSQL("a"))
		s.doRollback("rollback", tx)
		s.doRollback("again", tx)
		s.doSQL("query", byID(tx), "SELECT 1")
		s.doCommit("commit", tx)
		s.rows()
	},
	"a commit that fails": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doCommit("setup", tx, insert("a"))
		tx = s.begin(readWrite)
		s.doSQL("insert", byID(tx), insertSQL("b"))
		s.doCommit("exists", tx, insert("a"))
		s.doCommit("again", tx, insert("c"))
		s.doSQL("query", byID(tx), "SELECT 1")
		s.doRollback("rollback", tx)
		tx = s.begin(readWrite)
		s.doCommit("no table", tx, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "Nope"}}})
		s.doCommit("again", tx)
		s.doRollback("rollback", tx)
		tx = s.begin(readWrite)
		s.doCommit("empty mutation", tx, &spannerpb.Mutation{})
		s.doRollback("rollback", tx)
		s.rows()
	},
	"a statement that meets a constraint": func(s *transcript) {
		tx := s.begin(readWrite)
		s.doCommit("setup", tx, insert("a"))
		tx = s.begin(readWrite)
		s.doSQL("exists", byID(tx), insertSQL("a"))
		s.doSQL("another", byID(tx), insertSQL("b"))
		s.doCommit("commit", tx)
		s.doRollback("rollback", tx)
		s.rows()
	},
	"single-use commits": func(s *transcript) {
		r, err := s.Commit(s.ctx(), &spannerpb.CommitRequest{Session: s.session, ReturnCommitStats: true,
			Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite}, Mutations: []*spannerpb.Mutation{insert("a"), insert("b")}})
		s.note("read-write", r, err)
		r, err = s.apply(s.ctx(), insert("a"))
		s.note("exists", r, err)
		r, err = s.Commit(s.ctx(), &spannerpb.CommitRequest{Session: s.session, Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: strong}})
		s.note("read-only", r, err)
		r, err = s.Commit(s.ctx(), &spannerpb.CommitRequest{Session: s.session, Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: partDML}})
		s.note("partitioned", r, err)
		r, err = s.Commit(s.ctx(), &spannerpb.CommitRequest{Session: s.session})
		s.note("none", r, err)
		s.rows()
	},
	"read-only transactions": func(s *transcript) {
		tx := s.begin(strong)
		s.doSQL("query", byID(tx), "SELECT Id FROM T")
		s.doStream("streaming query", byID(tx), "SELECT Id FROM T")
		s.doSQL("DML", byID(tx), insertSQL("a"))
		s.doCommit("commit", tx)
		s.doRollback("rollback", tx)
		s.doSQL("inline", begins(strong), "SELECT Id FROM T")
		s.doStream("inline, streaming", begins(strong), "SELECT Id FROM T")
		s.doSQL("inline, without time", begins(readOnly(&spannerpb.TransactionOptions_ReadOnly{})), "SELECT Id FROM T")
		s.doSQL("inline DML", begins(strong), insertSQL("a"))
		s.doSQL("single use", once(strong), "SELECT Id FROM T")
		s.doSQL("single-use DML", once(strong), insertSQL("a"))
		s.doSQL("nothing said", nil, "SELECT Id FROM T")
		s.doSQL("nothing said, DML", nil, insertSQL("a"))
		s.doSQL("an empty selector", &spannerpb.TransactionSelector{}, "SELECT Id FROM T")
		s.doSQL("single-use read-write", once(readWrite), "SELECT Id FROM T")
		s.doSQL("single-use partitioned", once(partDML), insertSQL("a"))
	},
	"timestamp bounds": func(s *transcript) {
		stale := readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_MaxStaleness{MaxStaleness: durationpb.New(time.Millisecond)}})
		exact := readOnly(&spannerpb.TransactionOptions_ReadOnly{ReturnReadTimestamp: true, TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ExactStaleness{ExactStaleness: durationpb.New(time.Millisecond)}})
		s.doSQL("max staleness, single use", once(stale), "SELECT 1")
		s.doSQL("max staleness, inline", begins(stale), "SELECT 1")
		tx, err := s.BeginTransaction(s.ctx(), &spannerpb.BeginTransactionRequest{Session: s.session, Options: stale})
		s.note("max staleness, explicit", tx, err)
		tx, err = s.BeginTransaction(s.ctx(), &spannerpb.BeginTransactionRequest{Session: s.session, Options: exact})
		s.note("exact staleness", tx, err)
		tx, err = s.BeginTransaction(s.ctx(), &spannerpb.BeginTransactionRequest{Session: s.session})
		s.note("no options", tx, err)
		tx, err = s.BeginTransaction(s.ctx(), &spannerpb.BeginTransactionRequest{Session: s.session, Options: readOnly(&spannerpb.TransactionOptions_ReadOnly{})})
		s.note("nothing said", tx, err)
	},
	"partitioned DML": func(s *transcript) {
		s.doCommit("setup", s.begin(readWrite), insert("a"), insert("b"))
		tx := s.begin(partDML)
		s.doSQL("update", byID(tx), "UPDATE T SET N = N + 1 WHERE TRUE")
		s.doSQL("second", byID(tx), "UPDATE T SET N = N + 1 WHERE TRUE")
		s.doCommit("commit", tx)
		s.doStream("streaming", byID(s.begin(partDML)), "UPDATE T SET N = N + 1 WHERE TRUE")
		s.doSQL("query", byID(s.begin(partDML)), "SELECT 1")
		s.doSQL("no table", byID(s.begin(partDML)), "UPDATE Nope SET N = N + 1 WHERE TRUE")
		s.doSQL("inline", begins(partDML), "UPDATE T SET N = N + 1 WHERE TRUE")
		s.doSQL("seen", nil, "SELECT Id FROM T WHERE N = 4")
	},
	"partitions": func(s *transcript) {
		s.doCommit("setup", s.begin(readWrite), insert("a"), insert("b"))
		const query = "SELECT Id FROM T"
		p, err := s.PartitionQuery(s.ctx(), &spannerpb.PartitionQueryRequest{Session: s.session, Transaction: begins(strong), Sql: query})
		s.note("query, inline", p, err)
		n := 0
		for _, part := range p.GetPartitions() {
			rs, err := s.ExecuteSql(s.ctx(), &spannerpb.ExecuteSqlRequest{Session: s.session, Transaction: byID(p.GetTransaction().GetId()), Sql: query, PartitionToken: part.GetPartitionToken()})
			require.NoError(s.t, err)
			n += len(rs.GetRows())
		}
		s.lines = append(s.lines, fmt.Sprintf("%d rows in all partitions", n))
		rs, err := s.ExecuteSql(s.ctx(), &spannerpb.ExecuteSqlRequest{Session: s.session, Transaction: byID(p.GetTransaction().GetId()), Sql: "SELECT N FROM T", PartitionToken: p.GetPartitions()[0].GetPartitionToken()})
		s.note("another query", rs, err)
		rs, err = s.ExecuteSql(s.ctx(), &spannerpb.ExecuteSqlRequest{Session: s.session, Transaction: once(strong), Sql: query, PartitionToken: p.GetPartitions()[0].GetPartitionToken()})
		s.note("another transaction", rs, err)

		tx := s.begin(strong)
		r, err := s.PartitionRead(s.ctx(), &spannerpb.PartitionReadRequest{Session: s.session, Transaction: byID(tx), Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}})
		s.note("read, explicit", r, err)
		n = 0
		for _, part := range r.GetPartitions() {
			req := readAll(s.raw, byID(tx))
			req.PartitionToken = part.GetPartitionToken()
			parts, err := all(s.StreamingRead(s.ctx(), req))
			require.NoError(s.t, err)
			for _, p := range parts {
				n += len(p.GetValues())
			}
		}
		s.lines = append(s.lines, fmt.Sprintf("%d rows in all partitions", n))

		p, err = s.PartitionQuery(s.ctx(), &spannerpb.PartitionQueryRequest{Session: s.session, Transaction: once(strong), Sql: query})
		s.note("single use", p, err)
		p, err = s.PartitionQuery(s.ctx(), &spannerpb.PartitionQueryRequest{Session: s.session, Sql: query})
		s.note("nothing said", p, err)
		p, err = s.PartitionQuery(s.ctx(), &spannerpb.PartitionQueryRequest{Session: s.session, Transaction: byID(s.begin(readWrite)), Sql: query})
		s.note("read-write", p, err)
	},
	"transactions that are not there": func(s *transcript) {
		s.doSQL("query", byID([]byte("999999")), "SELECT 1")
		_, err := s.on(s.newSession(nil)).commit(s.ctx(), []byte("999999"))
		s.note("commit", nil, err)
	},
	"sessions": func(s *transcript) {
		_, err := s.GetSession(s.ctx(), &spannerpb.GetSessionRequest{Name: s.session})
		s.note("get", nil, err)
		for i := range 2 {
			_, err = s.DeleteSession(s.ctx(), &spannerpb.DeleteSessionRequest{Name: s.session})
			s.note(fmt.Sprint("delete ", i), nil, err)
		}
		_, err = s.GetSession(s.ctx(), &spannerpb.GetSessionRequest{Name: s.session})
		s.note("get again", nil, err)
		s.doSQL("query", nil, "SELECT 1")
		_, err = s.CreateSession(s.ctx(), &spannerpb.CreateSessionRequest{Database: s.database + "2"})
		s.note("no database", nil, err)
		s.on(s.database+"2/sessions/1").noteSQL(s, "query there")
		_, err = s.CreateSession(s.ctx(), &spannerpb.CreateSessionRequest{})
		s.note("no name", nil, err)
		_, err = s.CreateSession(s.ctx(), &spannerpb.CreateSessionRequest{Database: s.database, Session: &spannerpb.Session{Labels: map[string]string{"A B": "x"}}})
		s.note("label", nil, err)
		for _, n := range []int32{-1, 0, 3, 1000} {
			made, err := s.BatchCreateSessions(s.ctx(), &spannerpb.BatchCreateSessionsRequest{Database: s.database, SessionCount: n})
			s.note(fmt.Sprintf("batch of %d: %d", n, len(made.GetSession())), nil, err)
		}
	},
	"row deletes and writes of one key": func(s *transcript) {
		s.doCommit("setup", s.begin(readWrite), insert("a"))
		key := &spannerpb.KeySet{Keys: []*structpb.ListValue{{Values: []*structpb.Value{structpb.NewStringValue("a")}}}}
		del := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: key}}}
		s.doCommit("delete and insert", s.begin(readWrite), del, insert("a"))
		tx := s.begin(readWrite)
		s.doSQL("delete", byID(tx), "DELETE FROM T WHERE Id = 'a'")
		s.doSQL("its own delete is seen", byID(tx), "SELECT Id FROM T")
		s.doSQL("insert", byID(tx), insertSQL("a"))
		s.doCommit("commit", tx)
		s.doCommit("asserted delete by mutations", s.begin(readWrite), &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{
			Table: "T", Columns: []string{"Id"}, Values: []*structpb.ListValue{{Values: []*structpb.Value{structpb.NewStringValue("nobody")}}}}}}, del)
		s.rows()
	},
}

func (r *raw) noteSQL(s *transcript, what string) {
	rs, err := r.sql(context.Background(), nil, "SELECT 1")
	s.note(what, rs, err)
}

// What the bare emulator can do the front does in the same words.
func TestParityWithTheBareEmulator(t *testing.T) {
	t.Parallel()
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(addr func(db *emulatortest.DB) string) []string {
				db := emulatortest.Database(t, table)
				s := &transcript{raw: newRaw(t, addr(db), db.Name)}
				script(s)
				for i := range s.lines {
					s.lines[i] = strings.ReplaceAll(strings.ReplaceAll(s.lines[i], s.session, "SESSION"), s.database, "DATABASE")
				}
				return s.lines
			}
			bare := run(func(db *emulatortest.DB) string { return db.Emulator().BackendAddr() })
			fronted := run(func(db *emulatortest.DB) string { return db.Endpoint() })
			require.NotEmpty(t, bare)
			require.Equal(t, bare, fronted)
		})
	}
}
