package schema

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidateNamesFieldValueAndBounds(t *testing.T) {
	t.Parallel()
	many := make([]Column, 17)
	for i := range many {
		many[i] = Column{Name: fmt.Sprintf("C%d", i), Type: Int64()}
	}
	for _, c := range []struct {
		change func(q *Queue)
		field  string
		value  string
		reason string
	}{
		{func(q *Queue) { q.Name = "" }, "Name", "", "is empty"},
		{func(q *Queue) { q.Name = "shop.Tasks" }, "Name", "shop.Tasks", "named schema"},
		{func(q *Queue) { q.Name = "a b" }, "Name", "a b", "found ' '"},
		{func(q *Queue) { q.KeyColumns = nil }, "KeyColumns", "0", "1 to 16"},
		{func(q *Queue) { q.KeyColumns, q.PrimaryKey = many, nil }, "KeyColumns", "17", "1 to 16"},
		{func(q *Queue) { q.KeyColumns[1].Name = "USERID" }, "KeyColumns[1].Name", "USERID", "taken by UserId"},
		{func(q *Queue) { q.KeyColumns[1].Name = "DELIVERTIME" }, "KeyColumns[1].Name", "DELIVERTIME", "may not be declared"},
		{func(q *Queue) { q.KeyColumns[0].Name = "Payload" }, "KeyColumns[0].Name", "Payload", "cannot be part of the key"},
		{func(q *Queue) { q.KeyColumns[0].Name = "SpannerLastBatchMessage" }, "KeyColumns[0].Name", "SpannerLastBatchMessage", "reserved"},
		{func(q *Queue) { q.KeyColumns[0].Type = Type{} }, "KeyColumns[0].Type", "(no type)", "no type is given"},
		{func(q *Queue) { q.KeyColumns[0].Type = Type{Kind: "INT32"} }, "KeyColumns[0].Type", "INT32", "not a known type"},
		{func(q *Queue) { q.KeyColumns[0].Type = String(0) }, "KeyColumns[0].Type", "STRING(0)", "1 to 2621440"},
		{func(q *Queue) { q.KeyColumns[0].Type = String(2_621_441) }, "KeyColumns[0].Type", "STRING(2621441)", "1 to 2621440"},
		{func(q *Queue) { q.KeyColumns[0].Type = Bytes(-2) }, "KeyColumns[0].Type", "BYTES(-2)", "1 to 10485760"},
		{func(q *Queue) { q.KeyColumns[0].Type = JSON() }, "KeyColumns[0].Type", "JSON", "cannot be a key"},
		{func(q *Queue) { q.KeyColumns[0].Type.Length = 8 }, "KeyColumns[0].Type", "INT64", "has no length"},
		{func(q *Queue) { q.KeyColumns[0].Type.Proto = "a.B" }, "KeyColumns[0].Type", "INT64", "only a type of kind NAMED"},
		{func(q *Queue) { q.KeyColumns[0].Type = Proto("") }, "KeyColumns[0].Type", "``", "joined by dots"},
		{func(q *Queue) { q.KeyColumns[0].Type = Proto("a..B") }, "KeyColumns[0].Type", "a.``.B", "joined by dots"},
		{func(q *Queue) { q.KeyColumns[0].AllowCommitTimestamp = true }, "KeyColumns[0].AllowCommitTimestamp", "true", "only a TIMESTAMP column"},
		{func(q *Queue) {
			q.KeyColumns[0] = Column{Name: "UserId", Type: Timestamp(), Generated: "x", AllowCommitTimestamp: true}
		}, "KeyColumns[0].AllowCommitTimestamp", "true", "generated"},
		{func(q *Queue) { q.KeyColumns[0].Generated = "(1" }, "KeyColumns[0].Generated", "(1", "cannot be read"},
		{func(q *Queue) { q.KeyColumns[0].Generated = "1) STORED, X INT64 AS (1" }, "KeyColumns[0].Generated", "1) STORED, X INT64 AS (1", "cannot be read"},
		{func(q *Queue) { q.KeyColumns[0].Generated = "1 -- one" }, "KeyColumns[0].Generated", "1 -- one", "cannot be read"},
		{func(q *Queue) { q.KeyColumns[0].Generated = " 1" }, "KeyColumns[0].Generated", " 1", "without space"},
		{func(q *Queue) { q.Payload = Type{} }, "Payload", "", "BYTES, STRING, JSON or a proto"},
		{func(q *Queue) { q.Payload = Int64() }, "Payload", "INT64", "BYTES, STRING, JSON or a proto"},
		{func(q *Queue) { q.Payload = Bytes(10_485_761) }, "Payload", "BYTES(10485761)", "1 to 10485760"},
		{func(q *Queue) { q.PrimaryKey[0].Column = "Nr" }, "PrimaryKey[0].Column", "Nr", "no such column"},
		{func(q *Queue) { q.PrimaryKey[0].Column = "userid" }, "PrimaryKey[0].Column", "userid", "spelled UserId"},
		{func(q *Queue) { q.PrimaryKey[1].Column = "UserId" }, "PrimaryKey[1].Column", "UserId", "twice"},
		{func(q *Queue) { q.PrimaryKey[1].Column = "Payload" }, "PrimaryKey[1].Column", "Payload", "cannot be part"},
		{func(q *Queue) { q.PrimaryKey = q.PrimaryKey[:1] }, "KeyColumns[1].Name", "MessageId", "not in the primary key"},
		{func(q *Queue) { q.PrimaryKey = []KeyPart{} }, "KeyColumns[0].Name", "UserId", "not in the primary key"},
		{func(q *Queue) { q.Interleave.InParent = true }, "Interleave.Table", "", "need a table"},
		{func(q *Queue) { q.Interleave.Table = "a.b" }, "Interleave.Table", "a.b", "named schema"},
		{func(q *Queue) { q.Interleave.Table = "usertasks" }, "Interleave.Table", "usertasks", "in itself"},
		{func(q *Queue) { q.Interleave = Interleave{Table: "T", OnDelete: 2} }, "Interleave.OnDelete", "2", "NoAction or Cascade"},
		{func(q *Queue) { q.RowDeletion.Days = 3 }, "RowDeletion.Column", "", "3 days"},
		{func(q *Queue) { q.RowDeletion = RowDeletion{DeliverTimeColumn, -1} }, "RowDeletion.Days", "-1", "0 to"},
		{func(q *Queue) { q.RowDeletion = RowDeletion{"MessageId", 1} }, "RowDeletion.Column", "MessageId", "TIMESTAMP"},
		{func(q *Queue) { q.RowDeletion = RowDeletion{"Payload", 1} }, "RowDeletion.Column", "Payload", "no such column"},
		{func(q *Queue) { q.Options.ReceiveMode = "PUSH" }, "Options.ReceiveMode", "PUSH", "PULL"},
	} {
		t.Run(c.field+" "+c.value, func(t *testing.T) {
			t.Parallel()
			q := tasks()
			require.NoError(t, q.Validate())
			c.change(&q)
			err := q.Validate()
			var field *FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field)
			require.Equal(t, c.value, field.Value)
			require.Contains(t, field.Reason, c.reason)
		})
	}
}

func TestEveryKeyTypeButJSONIsAccepted(t *testing.T) {
	t.Parallel()
	for _, typ := range []Type{
		Bool(), Int64(), Float32(), Float64(), Numeric(), String(1), String(Max), Bytes(1), Bytes(Max),
		Date(), Timestamp(), UUID(), Proto("shop.v1.Kind"),
	} {
		q := Queue{Name: "Q", KeyColumns: []Column{{Name: "Id", Type: typ}}, Payload: JSON()}
		require.NoError(t, q.Validate(), typ)
	}
}

func TestKeyPartsOfADefinitionWithoutPrimaryKey(t *testing.T) {
	t.Parallel()
	q := tasks()
	q.PrimaryKey = nil
	require.Equal(t, tasks().PrimaryKey, q.KeyParts())
	parts := tasks().KeyParts()
	parts[0].Column = "changed"
	require.Equal(t, "UserId", tasks().PrimaryKey[0].Column, "the caller's copy is its own")
	c, ok := q.KeyColumn("messageid")
	require.True(t, ok)
	require.Equal(t, "MessageId", c.Name)
}
