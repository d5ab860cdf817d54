package front_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// impatient is a client of a database behind a front whose leases are short: what a stream had leased when it was
// closed comes back soon.
func impatient(t testing.TB, ddl string) *spanner.Client {
	t.Helper()
	db := emulatortest.Database(t, ddl)
	_, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{LeaseLength: 500 * time.Millisecond})
	return clientAt(t, addr, db.Name)
}

// firstRow is the first row of a query that may go on for long.
func firstRow(t testing.TB, c *spanner.Client, sql string) *spanner.Row {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), queuePatience)
	defer cancel()
	it := c.Single().Query(ctx, spanner.NewStatement(sql))
	defer it.Stop()
	row, err := it.Next()
	if errors.Is(err, iterator.Done) {
		return nil
	}
	require.NoError(t, err, sql)
	return row
}

// Every type of payload comes out as it went in, by mutation and by SQL.
func TestQueuePayloadTypes(t *testing.T) {
	t.Parallel()
	var bytes []byte
	for b := range 256 {
		bytes = append(bytes, byte(b))
	}
	json := func(text string) spanner.NullJSON {
		return spanner.NullJSON{Value: jsonText(text), Valid: true}
	}
	for name, test := range map[string]struct {
		ddl  string
		sent []any
		read func(*spanner.Row) (any, error)
	}{
		"BYTES": {"BYTES(MAX)", []any{bytes, []byte{}}, func(r *spanner.Row) (any, error) {
			var v []byte
			err := r.ColumnByName("Payload", &v)
			return v, err
		}},
		"STRING": {"STRING(MAX)", []any{"", "x\x00y", "é\u0301 \U0001F600 ''' \\ \""}, func(r *spanner.Row) (any, error) {
			var v string
			err := r.ColumnByName("Payload", &v)
			return v, err
		}},
		"JSON": {"JSON", []any{json(`{"id":3889108265204450030}`), json(`[1,null,"x"]`), json(`145688415796432520`)}, func(r *spanner.Row) (any, error) {
			var v spanner.GenericColumnValue
			err := r.ColumnByName("Payload", &v)
			return json(v.Value.GetStringValue()), err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := impatient(t, "CREATE QUEUE Q (Id INT64 NOT NULL, Payload "+test.ddl+" NOT NULL) PRIMARY KEY (Id)")
			for _, sent := range test.sent {
				for how, send := range map[string]func() error{
					"mutation": func() error {
						_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Q", spanner.Key{1}, sent)})
						return err
					},
					"SQL": func() error {
						_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
							_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO Q (Id, Payload) VALUES (1, @p)", Params: map[string]any{"p": sent}})
							return err
						})
						return err
					},
				} {
					require.NoError(t, send(), "%s: %v", how, sent)
					for _, list := range []string{"*", "Id, Payload", "1 + Id AS N, Payload"} { // copied, and evaluated
						row := firstRow(t, c, "SELECT "+list+" FROM RECEIVE_Q(max_duration => '1m') WHERE Payload IS NOT NULL")
						got, err := test.read(row)
						require.NoError(t, err)
						require.Equal(t, sent, got, "%s, %s", how, list)
						apply(t, c, spanner.Ack("Q", spanner.Key{1}))
						require.NoError(t, send())
					}
					apply(t, c, spanner.Ack("Q", spanner.Key{1}))
				}
			}
			_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Q", spanner.Key{2}, nil)})
			require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(err), "%v", err)
		})
	}
}

// jsonText is sent as it is written.
type jsonText string

func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// taskProto describes the message app.Task.
func taskProto(t testing.TB) (protoreflect.MessageDescriptor, []byte) {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("app.proto"), Package: proto.String("app"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Task"),
			Field: []*descriptorpb.FieldDescriptorProto{
				{Name: proto.String("name"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
				{Name: proto.String("n"), Number: proto.Int32(2), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			},
		}},
	}
	d, err := protodesc.NewFile(file, nil)
	require.NoError(t, err)
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	require.NoError(t, err)
	return d.Messages().ByName("Task"), set
}

func TestQueueProtoPayload(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	d, descriptors := taskProto(t)
	op, err := databaseAdmin(t, db).UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{
		Database: db.Name, ProtoDescriptors: descriptors,
		Statements: []string{"CREATE PROTO BUNDLE (app.Task)", "CREATE QUEUE Q (Id INT64 NOT NULL, Payload app.Task NOT NULL) PRIMARY KEY (Id)"},
	})
	require.NoError(t, err)
	require.NoError(t, op.Wait(t.Context()))
	require.Contains(t, describe(t, db)[1], "Payload app.Task NOT NULL")

	c := db.Client(t)
	task := dynamicpb.NewMessage(d)
	task.Set(d.Fields().ByName("name"), protoreflect.ValueOfString("x"))
	task.Set(d.Fields().ByName("n"), protoreflect.ValueOfInt64(7))
	apply(t, c, spanner.Send("Q", spanner.Key{1}, task))
	row := firstRow(t, c, "SELECT Payload, Payload.n AS N FROM RECEIVE_Q(max_duration => '1m') WHERE Payload.name = 'x'")
	require.Equal(t, spannerpb.TypeCode_PROTO, row.ColumnType(0).GetCode())
	require.Equal(t, "app.Task", row.ColumnType(0).GetProtoTypeFqn())
	got := dynamicpb.NewMessage(d)
	var n int64
	require.NoError(t, row.Columns(got, &n))
	require.True(t, proto.Equal(task, got))
	require.EqualValues(t, 7, n)
	apply(t, c, spanner.Ack("Q", spanner.Key{1}))
	require.Empty(t, values[int64](t, c, "SELECT Id FROM Q"))
}

// A part of the key that the database makes: SQL leaves it out, Send has a place for it, and the received key
// acknowledges.
func TestQueueGeneratedKeyColumn(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, `CREATE QUEUE Q (
  Shard INT64 NOT NULL AS (MOD(ABS(FARM_FINGERPRINT(Id)), 4)) STORED HIDDEN,
  Id STRING(36) NOT NULL,
  Payload STRING(MAX) NOT NULL
) PRIMARY KEY (Shard, Id)`).Client(t)
	apply(t, c, spanner.Send("Q", spanner.Key{nil, "by mutation"}, "x"))
	_, err := dml(t.Context(), c, "INSERT INTO Q (Id, Payload) VALUES ('by SQL', 'x')")
	require.NoError(t, err)
	open := c.Single().Query(t.Context(), spanner.NewStatement("SELECT Shard, * FROM RECEIVE_Q(max_duration => '1m', max_batch_size => 1)"))
	defer open.Stop()
	for range 2 {
		row, err := open.Next()
		require.NoError(t, err)
		require.Equal(t, []string{"Shard", "Id", "Payload", "DeliverTime"}, row.ColumnNames()[:4])
		var shard int64
		var id string
		require.NoError(t, row.Column(0, &shard))
		require.NoError(t, row.Column(1, &id))
		_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Ack("Q", spanner.Key{shard + 1, id})})
		require.Equal(t, codes.NotFound, spanner.ErrCode(err), "another key")
		apply(t, c, spanner.Ack("Q", spanner.Key{shard, id}))
		_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Ack("Q", spanner.Key{shard, id})})
		require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	}
	require.Empty(t, values[string](t, c, "SELECT Id FROM Q"))
}

// Every type of key that a queue can have.
func TestQueueKeyTypes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ddl string
		key any
	}{
		"BOOL":      {"BOOL", true},
		"INT64":     {"INT64", int64(-1 << 63)},
		"NUMERIC":   {"NUMERIC", spanner.NullNumeric{}},
		"STRING":    {"STRING(MAX)", "é' \x00"},
		"empty":     {"STRING(MAX)", ""},
		"BYTES":     {"BYTES(10)", []byte{0, 255}},
		"DATE":      {"DATE", spanner.NullDate{}},
		"TIMESTAMP": {"TIMESTAMP", time.Unix(1700000000, 123456789).UTC()},
		"FLOAT64":   {"FLOAT64", 1.5},
		"NULL":      {"INT64", spanner.NullInt64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := impatient(t, fmt.Sprintf("CREATE QUEUE Q (K %s, N INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (K DESC, N)", test.ddl))
			apply(t, c, spanner.Send("Q", spanner.Key{test.key, 1}, "x"), spanner.Send("Q", spanner.Key{test.key, 2}, "y"))
			for range 2 {
				row := firstRow(t, c, "SELECT K, N FROM RECEIVE_Q(max_duration => '1m', max_batch_size => 1)")
				var k spanner.GenericColumnValue
				var n int64
				require.NoError(t, row.Columns(&k, &n))
				apply(t, c, spanner.Ack("Q", spanner.Key{test.key, n}))
			}
			require.Empty(t, values[int64](t, c, "SELECT N FROM Q"))
		})
	}
}
