package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	databaseadmin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// F35: what is sent comes back, byte for byte, through receives and resends, or is refused at the send.
func TestF35PayloadsThroughSendReceiveResend(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, c := range []struct {
		payload  schema.Type
		payloads []string
		refused  []string
	}{
		{schema.Bytes(schema.Max), []string{"", string(all), "\xff\xfe", "plain"}, nil},
		{schema.Bytes(4), []string{"", "four"}, []string{"fifth"}},
		{schema.String(schema.Max), []string{"", "NULL", "\x00", "ключ ✓ \U0001F600", `'"` + "`\\", `{"id":3889108265204450030}`}, []string{"\xff"}},
		{schema.String(2), []string{"ёж"}, []string{"abc"}},
		{schema.JSON(),
			[]string{`{"id":3889108265204450030}`, `145688415796432520`, `18446744073709551615`, `-9223372036854775808`, `[9007199254740993,0.1]`, `null`, `""`},
			[]string{"", "{", `{"a":1,"a":2}`, `18446744073709551616`, `0.12345678901234567890123`, `1e400`, "\xff"}},
	} {
		t.Run(c.payload.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, schema.Queue{Name: "Q", KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}}, Payload: c.payload})
			for _, payload := range c.refused {
				err := w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{0}, Payload: []byte(payload)}})
				require.ErrorIs(t, err, queue.ErrInvalid, "%q", payload)
			}
			require.Zero(t, w.count())
			w.roundTrip(c.payloads)
		})
	}
}

// roundTrip sends the payloads under the keys 0, 1, ..., receives each, sends it again three times, and acknowledges it.
func (w *world) roundTrip(payloads []string) {
	w.t.Helper()
	t := w.t
	var keys []spanner.Key
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		keys = nil
		for i, payload := range payloads {
			keys = append(keys, spanner.Key{i})
			m := queue.Outgoing{Key: keys[i], Payload: []byte(payload)}
			if i%2 == 0 {
				insert, err := w.queue.SendStatement(m)
				require.NoError(t, err)
				if _, err := tx.Update(ctx, insert); err != nil {
					return err
				}
				continue
			}
			mutation, err := w.queue.SendMutation(m)
			require.NoError(t, err)
			if err := tx.BufferWrite([]*spanner.Mutation{mutation}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	for hop := range 4 {
		for _, m := range w.receive(len(payloads)) {
			require.Equal(t, payloads[m.Key[0].(int64)], string(m.Payload), "hop %d", hop)
			if hop == 3 {
				require.NoError(t, w.ack(m))
				continue
			}
			now, err := w.queue.ServerTime(t.Context())
			require.NoError(t, err)
			err = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				return w.queue.Resend(ctx, tx, m, now.Add(time.Millisecond), nil)
			})
			require.NoError(t, err)
		}
	}
	require.Zero(t, w.count())
}

// Nil is an empty payload, by every way.
func TestNilPayloadIsEmpty(t *testing.T) {
	t.Parallel()
	for _, payload := range []schema.Type{schema.Bytes(10), schema.String(10)} {
		w := newWorld(t, schema.Queue{Name: "Q", KeyColumns: tasks.KeyColumns, Payload: payload})
		require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"call"}}}))
		err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			insert, err := w.queue.SendStatement(queue.Outgoing{Key: spanner.Key{"statement"}})
			if err != nil {
				return err
			}
			_, err = tx.Update(ctx, insert)
			return err
		})
		require.NoError(t, err)
		for _, m := range w.receive(2) {
			require.NotNil(t, m.Payload)
			require.Empty(t, m.Payload)
		}
	}
}

// A payload of a type of the database's proto bundle is its serialised form.
func TestProtoPayloads(t *testing.T) {
	t.Parallel()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("order.proto"), Package: proto.String("shop.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Order"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("id"), Number: proto.Int32(1), JsonName: proto.String("id"),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(),
			}},
		}},
	}
	bundle, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	require.NoError(t, err)
	db := emulatortest.Database(t)
	admin, err := databaseadmin.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	defer admin.Close()
	definition := schema.Queue{Name: "Orders", KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}}, Payload: schema.Proto("shop.v1.Order")}
	op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{
		Database: db.Name, ProtoDescriptors: bundle,
		Statements: []string{"CREATE PROTO BUNDLE (shop.v1.`Order`)", definition.DDL()},
	})
	require.NoError(t, err)
	require.NoError(t, op.Wait(t.Context()))

	w := &world{t: t, db: db, client: db.Client(t)}
	w.queue, err = queue.Open(t.Context(), w.client, "Orders")
	require.NoError(t, err)
	require.Equal(t, definition.Payload, w.queue.Definition().Payload)
	var payloads []string
	for _, id := range []byte{0, 1, 127} {
		payloads = append(payloads, fmt.Sprintf("\x08%c", id)) // field 1, varint
	}
	w.roundTrip(append(payloads, ""))
}
