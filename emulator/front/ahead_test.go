package front_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// unread opens a stream, in a transaction that it begins, with more rows than any buffer on the way holds, and reads the
// first message.
func unread(t *testing.T, options front.Options) (r *raw, s *front.Server, stream spannerpb.Spanner_ExecuteStreamingSqlClient, tx []byte) {
	t.Helper()
	db := emulatortest.Database(t, table, "CREATE TABLE Big (Id STRING(10) NOT NULL, B STRING(MAX)) PRIMARY KEY (Id)")
	s, addr := newFront(t, db.Emulator().BackendAddr(), options)
	r = newRaw(t, addr, db.Name, grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<20))
	var rows []*structpb.ListValue
	for _, id := range bigIDs {
		rows = append(rows, text(string(id), strings.Repeat("x", 1<<18)))
	}
	_, err := r.apply(r.ctx(), &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: writing("Big", []string{"Id", "B"}, rows...)}})
	require.NoError(t, err)
	stream, err = r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: "SELECT B, Id FROM Big", Seqno: r.seqno.Add(1)})
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	return r, s, stream, first.GetMetadata().GetTransaction().GetId()
}

const bigIDs = "abcdefghijklmnopqrstuvwxyz"

// A transaction goes on beside an answer of its own that is not read to its end, and ends; the answer is whole.
func TestTransactionBesideAStreamThatIsNotRead(t *testing.T) {
	t.Parallel()
	r, s, stream, tx := unread(t, front.Options{})
	_, err := r.sql(r.ctx(), byID(tx), insertSQL("beside"))
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), tx)
	require.NoError(t, err)
	require.Equal(t, front.Stats{}, s.Stats())
	require.Equal(t, "1", r.count("Id = 'beside'"))
	r.requireFree()
	size := 0
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		for _, v := range m.GetValues() {
			size += len(v.GetStringValue())
		}
	}
	require.Greater(t, size, (len(bigIDs)-5)<<18)
}

// A client that does not read is idle, and does not hold up the others for ever.
func TestStreamThatIsNotReadGivesUpTheTurn(t *testing.T) {
	t.Parallel()
	r, _, _, tx := unread(t, front.Options{IdleBound: shortIdle})
	_, err := r.apply(r.ctx(), insert("waiter"))
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), tx)
	requireCode(t, codes.Aborted, err)
}

// A stream that is cancelled half-way leaves its transaction usable.
func TestStreamThatIsCancelled(t *testing.T) {
	t.Parallel()
	r, s, _, tx := unread(t, front.Options{})
	ctx, cancel := context.WithTimeout(r.ctx(), time.Minute)
	stream, err := r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: byID(tx), Sql: "SELECT B FROM Big", Seqno: r.seqno.Add(1)})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel()
	_, err = r.sql(r.ctx(), byID(tx), insertSQL("after"))
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), tx)
	require.NoError(t, err)
	require.Equal(t, front.Stats{}, s.Stats())
	require.Equal(t, "1", r.count("Id = 'after'"))
}
