package front_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// adminMethods are those that change nothing but one database's schema.
var adminMethods = []string{"UpdateDatabaseDdl", "GetDatabaseDdl", "GetDatabase", "CreateDatabase", "ListDatabases", "ListDatabaseRoles"}

// FuzzAdmin sends anything to the administrative methods that the front has an opinion on, with the database's name put
// right. Whatever it is, it is answered, no panic is behind the answer, and the database goes on.
func FuzzAdmin(f *testing.F) {
	methods := databasepb.File_google_spanner_admin_database_v1_spanner_database_admin_proto.Services().ByName("DatabaseAdmin").Methods()
	for i, batch := range [][]string{
		{taskQueue}, {"DROP QUEUE IF EXISTS Tasks", taskQueue, "ALTER QUEUE Tasks SET OPTIONS (disable_send = true)"},
		{"CREATE ROLE a", "GRANT SELECT ON QUEUE Q TO ROLE a"}, {"DROP TABLE T"}, {"", ";", "\x00"}, nil,
		{"ALTER QUEUE Q ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 1 DAY))"},
		{"CREATE TABLE spanqueue_roles (Declaration STRING(MAX) DEFAULT ('[')) PRIMARY KEY (Declaration)"},
	} {
		body, err := proto.Marshal(&databasepb.UpdateDatabaseDdlRequest{Statements: batch, OperationId: fmt.Sprintf("op%d", i)})
		require.NoError(f, err)
		f.Add(uint8(0), body)
		body, err = proto.Marshal(&databasepb.CreateDatabaseRequest{CreateStatement: "CREATE DATABASE x", ExtraStatements: batch})
		require.NoError(f, err)
		f.Add(uint8(3), body)
	}
	for i := range adminMethods {
		f.Add(uint8(i), []byte("\xff\xff"))
		f.Add(uint8(i), []byte(nil))
	}
	var said complaints
	db := emulatortest.Database(f)
	s, err := front.New(context.Background(), db.Emulator().BackendAddr(), front.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(f, err)
	r := newRaw(f, serve(f, s), db.Name)

	f.Fuzz(func(t *testing.T, method uint8, body []byte) {
		m := methods.ByName(protoreflect.Name(adminMethods[int(method)%len(adminMethods)]))
		req := dynamicpb.NewMessage(m.Input())
		if proto.Unmarshal(body, req) == nil {
			for _, name := range []protoreflect.Name{"database", "name"} {
				if field := m.Input().Fields().ByName(name); field != nil {
					req.Set(field, protoreflect.ValueOfString(db.Name))
				}
			}
			// CREATE DATABASE stays without an instance that exists: there can be only so many databases.
			body, _ = proto.Marshal(req)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+string(m.Parent().FullName())+"/"+string(m.Name()), grpc.ForceCodecV2(bytesCodec{}))
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
		if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
			t.Fatalf("the front or the emulator is gone: %v", err)
		}
		if _, err := r.sql(ctx, nil, "SELECT 1"); err != nil {
			t.Fatalf("the database is gone: %v", err)
		}
	})
}
