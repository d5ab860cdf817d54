package front_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// bytesCodec sends and receives messages as they are on the wire.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
func (bytesCodec) Name() string { return "proto" }

var _ encoding.CodecV2 = bytesCodec{}

// complaints is where a front tells of panics.
type complaints struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *complaints) panics() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(c.text.String(), "panic") {
		return c.text.String()
	}
	return ""
}

// FuzzRequests sends anything to any method of google.spanner.v1. Whatever it is, it is answered, no panic is behind
// the answer, and the front goes on. With known set, the session in the request, and a transaction id that is not
// empty, are put right, so that the request gets further.
func FuzzRequests(f *testing.F) {
	methods := spannerpb.File_google_spanner_v1_spanner_proto.Services().ByName("Spanner").Methods()
	seeds := []proto.Message{
		&spannerpb.CreateSessionRequest{Database: "d", Session: &spannerpb.Session{Multiplexed: true}},
		&spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", Transaction: begins(readWrite), Seqno: 1},
		&spannerpb.ExecuteSqlRequest{Sql: insertSQL("a"), Transaction: byID([]byte("x")), Seqno: 1},
		&spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", Transaction: byID([]byte("x")), PartitionToken: []byte("p")},
		&spannerpb.ExecuteBatchDmlRequest{Transaction: begins(readWrite), Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: missSQL}}},
		&spannerpb.ReadRequest{Table: "T", Columns: []string{"Id"}, KeySet: &spannerpb.KeySet{All: true}, Transaction: begins(strong)},
		&spannerpb.BeginTransactionRequest{Options: readWrite, MutationKey: &spannerpb.Mutation{}},
		&spannerpb.CommitRequest{Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: []byte("x")}, Mutations: []*spannerpb.Mutation{insert("a"), nil}},
		&spannerpb.CommitRequest{Transaction: &spannerpb.CommitRequest_SingleUseTransaction{}},
		&spannerpb.RollbackRequest{TransactionId: []byte("x")},
		&spannerpb.PartitionQueryRequest{Sql: "SELECT 1", Transaction: begins(strong)},
		&spannerpb.BatchWriteRequest{MutationGroups: []*spannerpb.BatchWriteRequest_MutationGroup{{Mutations: []*spannerpb.Mutation{upsert("a")}}, nil}},
		&spannerpb.ListSessionsRequest{Filter: "labels.a:b labels. x:", PageToken: "x"},
	}
	for i := range methods.Len() {
		for _, m := range seeds {
			if m.ProtoReflect().Descriptor() != methods.Get(i).Input() {
				continue
			}
			body, err := proto.Marshal(m)
			require.NoError(f, err)
			f.Add(uint8(i), body, true)
			f.Add(uint8(i), body, false)
		}
		f.Add(uint8(i), []byte(nil), true)
		f.Add(uint8(i), []byte("\xff\xff\xff"), false)
	}

	db := emulatortest.Database(f, table, "CREATE QUEUE Q (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)")
	var said complaints
	logger := slog.New(slog.NewTextHandler(&said, nil))
	s, err := front.New(context.Background(), db.Emulator().BackendAddr(), front.Options{IdleBound: 20 * time.Millisecond, Logger: logger})
	require.NoError(f, err)
	r := newRaw(f, serve(f, s), db.Name)

	f.Fuzz(func(t *testing.T, method uint8, body []byte, known bool) {
		m := methods.Get(int(method) % methods.Len())
		if known {
			mine := *r
			mine.t = t
			body = putRight(m.Input(), body, &mine)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, fmt.Sprintf("/google.spanner.v1.Spanner/%s", m.Name()), grpc.ForceCodecV2(bytesCodec{}))
		if err == nil {
			err = stream.SendMsg(body)
		}
		if err == nil {
			err = stream.CloseSend()
		}
		for err == nil {
			var answer []byte
			err = stream.RecvMsg(&answer)
		}
		if text := said.panics(); text != "" {
			t.Fatal(text)
		}
		if status.Code(err) == codes.Unavailable {
			t.Fatalf("the front or the emulator is gone: %v", err)
		}
	})
}

// putRight gives a request the client's session, and a transaction of it where it names one.
func putRight(d protoreflect.MessageDescriptor, body []byte, r *raw) []byte {
	m := dynamicpb.NewMessage(d)
	if proto.Unmarshal(body, m) != nil {
		return body
	}
	set := func(name protoreflect.Name, value protoreflect.Value) {
		if f := d.Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			m.Set(f, value)
		}
	}
	set("session", protoreflect.ValueOfString(r.session))
	set("database", protoreflect.ValueOfString(r.database))
	for _, f := range []protoreflect.FieldDescriptor{d.Fields().ByName("transaction_id"), d.Fields().ByName("transaction")} {
		switch {
		case f == nil || !m.Has(f):
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes(r.begin(readWrite)))
		case f.Kind() == protoreflect.MessageKind:
			sel := m.Mutable(f).Message()
			if id := sel.Descriptor().Fields().ByName("id"); id != nil && sel.Has(id) {
				sel.Set(id, protoreflect.ValueOfBytes(r.begin(readWrite)))
			}
		}
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return nil
	}
	return body
}
