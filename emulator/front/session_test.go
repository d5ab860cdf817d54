package front_test

import (
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// A session says all it means in its name: the next front knows it too.
func TestSessionsOutliveTheirFront(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table, "CREATE ROLE reader")
	_, firstAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	_, secondAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	first := newRaw(t, firstAddr, db.Name)
	name := first.newSession(&spannerpb.Session{Multiplexed: true, CreatorRole: "reader", Labels: map[string]string{"env": "test"}})
	second := newRaw(t, secondAddr, db.Name).on(name)
	got, err := second.GetSession(second.ctx(), &spannerpb.GetSessionRequest{Name: name})
	require.NoError(t, err)
	require.Equal(t, name, got.GetName())
	require.True(t, got.GetMultiplexed())
	require.Equal(t, "reader", got.GetCreatorRole())
	require.Equal(t, map[string]string{"env": "test"}, got.GetLabels())
	require.NotNil(t, got.GetCreateTime())
	second.requireFree()

	// So does a read-only transaction; a read-write one is gone.
	ro, rw := first.on(name).begin(strong), first.on(name).begin(readWrite)
	_, err = second.sql(second.ctx(), byID(ro), "SELECT Id FROM T")
	require.NoError(t, err)
	_, err = second.sql(second.ctx(), byID(rw), "SELECT Id FROM T")
	requireCode(t, codes.Aborted, err)
	require.NoError(t, second.rollback(second.ctx(), rw))
}

func TestSessionsOfTheEmulatorAreForeign(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	bare := newRaw(t, db.Emulator().BackendAddr(), db.Name)
	r := newRaw(t, db.Endpoint(), db.Name).on(bare.session)
	_, err := r.sql(r.ctx(), nil, "SELECT 1")
	requireCode(t, codes.NotFound, err)
	_, err = r.apply(r.ctx(), insert("a"))
	requireCode(t, codes.NotFound, err)
	for _, name := range []string{"", "x", db.Name, db.Name + "/sessions/"} {
		_, err := r.on(name).sql(r.ctx(), nil, "SELECT 1")
		requireCode(t, codes.InvalidArgument, err)
	}
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	want := map[string]bool{r.session: true}
	for range 4 {
		want[r.newSession(nil)] = true
	}
	labelled := r.newSession(&spannerpb.Session{Labels: map[string]string{"env": "dev"}})
	r.newSession(&spannerpb.Session{Multiplexed: true}) // not listed
	gone := r.newSession(nil)
	_, err := r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: gone})
	require.NoError(t, err)
	want[labelled] = true

	got := map[string]bool{}
	for token := ""; ; {
		page, err := r.ListSessions(r.ctx(), &spannerpb.ListSessionsRequest{Database: r.database, PageSize: 2, PageToken: token})
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.GetSessions()), 2)
		for _, s := range page.GetSessions() {
			require.False(t, got[s.GetName()], "listed twice")
			got[s.GetName()] = true
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Equal(t, want, got)
	for filter, n := range map[string]int{"labels.env:*": 1, "labels.env:dev": 1, "labels.env:prod": 0, "labels.other:*": 0, "": 6} {
		page, err := r.ListSessions(r.ctx(), &spannerpb.ListSessionsRequest{Database: r.database, Filter: filter})
		require.NoError(t, err)
		require.Len(t, page.GetSessions(), n, filter)
	}
}

// Pre-commit tokens rise; any is accepted.
func TestPrecommitTokens(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	m := r.on(r.newSession(&spannerpb.Session{Multiplexed: true}))
	var seen []int32
	note := func(token *spannerpb.MultiplexedSessionPrecommitToken) {
		t.Helper()
		require.NotEmpty(t, token.GetPrecommitToken())
		seen = append(seen, token.GetSeqNum())
	}
	rs, err := m.sql(m.ctx(), begins(readWrite), insertSQL("a"))
	require.NoError(t, err)
	tx := rs.GetMetadata().GetTransaction().GetId()
	note(rs.GetPrecommitToken())
	b, err := m.batch(m.ctx(), byID(tx), insertSQL("b"))
	require.NoError(t, err)
	note(b.GetPrecommitToken())
	parts, err := all(m.StreamingRead(m.ctx(), readAll(m, byID(tx))))
	require.NoError(t, err)
	note(parts[0].GetPrecommitToken())
	require.IsIncreasing(t, seen)
	_, err = m.Commit(m.ctx(), &spannerpb.CommitRequest{Session: m.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx},
		PrecommitToken: &spannerpb.MultiplexedSessionPrecommitToken{PrecommitToken: []byte("anything"), SeqNum: -7}})
	require.NoError(t, err)

	begun, err := m.BeginTransaction(m.ctx(), &spannerpb.BeginTransactionRequest{Session: m.session, Options: readWrite, MutationKey: insert("a")})
	require.NoError(t, err)
	require.NotNil(t, begun.GetPrecommitToken())
	require.NoError(t, m.rollback(m.ctx(), begun.GetId()))

	// Others have none.
	rs, err = m.sql(m.ctx(), nil, "SELECT 1")
	require.NoError(t, err)
	require.Nil(t, rs.GetPrecommitToken())
	rs, err = r.sql(r.ctx(), begins(readWrite), "SELECT 1")
	require.NoError(t, err)
	require.Nil(t, rs.GetPrecommitToken())
	require.NoError(t, r.rollback(r.ctx(), rs.GetMetadata().GetTransaction().GetId()))
}

// What the service refuses after a last statement, and the emulator lets pass.
func TestLastStatement(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	for name, last := range map[string]func(tx []byte) error{
		"ExecuteSql": func(tx []byte) error {
			_, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: byID(tx), Sql: "DELETE FROM T WHERE FALSE", Seqno: 1, LastStatement: true})
			return err
		},
		"ExecuteStreamingSql": func(tx []byte) error {
			_, err := all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: byID(tx), Sql: "DELETE FROM T WHERE FALSE", Seqno: 1, LastStatement: true}))
			return err
		},
		"ExecuteBatchDml": func(tx []byte) error {
			_, err := r.ExecuteBatchDml(r.ctx(), &spannerpb.ExecuteBatchDmlRequest{Session: r.session, Transaction: byID(tx), Seqno: 1, LastStatements: true,
				Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: "DELETE FROM T WHERE FALSE"}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx := r.begin(readWrite)
			require.NoError(t, last(tx))
			for _, call := range statements {
				requireCode(t, codes.FailedPrecondition, call(r.ctx(), r, tx))
			}
			_, err := r.commit(r.ctx(), tx, insert(name))
			requireCode(t, codes.FailedPrecondition, err)
			_, err = r.commit(r.ctx(), tx)
			require.NoError(t, err)
			require.Equal(t, "0", r.count("TRUE"))
		})
	}
}
