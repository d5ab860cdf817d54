package front_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// A cell may have 10 MiB, in the bare emulator, through the front, and in a queue.
const maxCell = 10 << 20

type largeSize struct {
	bytes int
	fits  bool
}

// largeSizes are few in a short run: the race detector looks at every byte.
func largeSizes() map[string]largeSize {
	sizes := map[string]largeSize{
		"4 MiB":       {4 << 20, true},
		"9.9 MiB":     {99 << 20 / 10, true},
		"over 10 MiB": {maxCell + 1, false},
	}
	if longRun() {
		sizes["10 MiB"] = largeSize{maxCell, true}
		sizes["far too long"] = largeSize{12 << 20, false}
	}
	return sizes
}

// mebi is a value with a pattern, so that a piece that is lost or out of place shows.
func mebi(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// together reads a stream whose rows have one column.
func together(parts []*spannerpb.PartialResultSet) string {
	var b strings.Builder
	for _, p := range parts {
		for _, v := range p.GetValues() {
			b.WriteString(v.GetStringValue())
		}
	}
	return b.String()
}

// ofLarge is patient: the race detector, and other tests, may take a minute.
func ofLarge(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestLargeValuesInTables(t *testing.T) {
	t.Parallel()
	ctx := ofLarge(t)
	db := emulatortest.Database(t, "CREATE TABLE Blob (Id INT64, B BYTES(MAX)) PRIMARY KEY (Id)")
	outcome := make(map[string]string) // of the first, to compare with
	for _, addr := range []string{db.Emulator().BackendAddr(), db.Endpoint()} {
		r := newRaw(t, addr, db.Name) // takes messages of 4 MiB, as gRPC's clients do unless told otherwise
		for name, size := range largeSizes() {
			value := base64.StdEncoding.EncodeToString(mebi(size.bytes))
			key := structpb.NewStringValue(fmt.Sprint(size.bytes))
			_, err := r.apply(ctx, &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
				Table: "Blob", Columns: []string{"Id", "B"}, Values: []*structpb.ListValue{{Values: []*structpb.Value{key, structpb.NewStringValue(value)}}},
			}}})
			require.Equal(t, size.fits, err == nil, "%s: %v", name, err)
			got := status.Convert(err).Code().String() + status.Convert(err).Message()
			if before, ok := outcome[name]; ok {
				require.Equal(t, before, got, name)
			}
			outcome[name] = got
			if !size.fits {
				continue
			}
			parts, err := all(r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: fmt.Sprintf("SELECT B FROM Blob WHERE Id = %d", size.bytes)}))
			require.NoError(t, err)
			require.True(t, value == together(parts), "%s: the query's value differs", name)
			parts, err = all(r.StreamingRead(ctx, &spannerpb.ReadRequest{Session: r.session, Table: "Blob", Columns: []string{"B"}, KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{{Values: []*structpb.Value{key}}}}}))
			require.NoError(t, err)
			require.True(t, value == together(parts), "%s: the read's value differs", name)
		}
	}
}

func TestLargeValuesInQueues(t *testing.T) {
	t.Parallel()
	patient := ofLarge(t)
	db := emulatortest.Database(t, "CREATE QUEUE Blobs (Id INT64 NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (Id)")
	r := newRaw(t, db.Endpoint(), db.Name)
	for name, size := range largeSizes() {
		value := base64.StdEncoding.EncodeToString(mebi(size.bytes))
		key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("1")}}
		bySQL := func() error {
			rs, err := r.ExecuteSql(patient, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Seqno: 1,
				Sql:        "INSERT INTO Blobs (Id, Payload) VALUES (1, @p)",
				Params:     &structpb.Struct{Fields: map[string]*structpb.Value{"p": structpb.NewStringValue(value)}},
				ParamTypes: map[string]*spannerpb.Type{"p": {Code: spannerpb.TypeCode_BYTES}}})
			if err != nil {
				return err
			}
			_, err = r.commit(patient, rs.GetMetadata().GetTransaction().GetId())
			return err
		}
		byMutation := func() error {
			_, err := r.apply(patient, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{
				Queue: "Blobs", Key: key, Payload: structpb.NewStringValue(value),
			}}})
			return err
		}
		// The condition and the expression send the value to the emulator and back.
		const plain = "SELECT Payload FROM RECEIVE_Blobs(max_duration => '1m')"
		const evaluated = "SELECT IF(BYTE_LENGTH(Payload) > 0, Payload, NULL) FROM RECEIVE_Blobs(max_duration => '1m') WHERE BYTE_LENGTH(Payload) > 1"
		for how, test := range map[string]struct {
			send func() error
			sql  string
		}{"SQL": {bySQL, plain}, "mutation": {byMutation, evaluated}} {
			err := test.send()
			if !size.fits {
				requireCode(t, codes.FailedPrecondition, err)
				continue
			}
			require.NoError(t, err, "%s by %s", name, how)
			ctx, stop := context.WithCancel(patient)
			stream, err := r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: test.sql})
			require.NoError(t, err)
			var parts []*spannerpb.PartialResultSet
			for len(parts) < 2 || parts[len(parts)-1].GetResumeToken() == nil { // metadata, and the row's pieces
				p, err := stream.Recv()
				require.NoError(t, err, "%s by %s", name, how)
				parts = append(parts, p)
			}
			stop()
			require.True(t, value == together(parts), "%s by %s: the value differs", name, how)
			_, err = r.apply(patient, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{Queue: "Blobs", Key: key}}})
			require.NoError(t, err)
		}
	}
}
