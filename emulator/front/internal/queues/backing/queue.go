package backing

import (
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
	"github.com/spanqueue/spanqueue/schema"
)

// Names of the hidden columns.
const (
	generationColumn = "SpanqueueGeneration"
	sentColumn       = "SpanqueueSentTime"
)

// Names of the columns that the two functions add or return.
const (
	expirationColumn = "SpannerLeaseExpirationTimestamp"
	leaseTokenColumn = "SpannerLeaseToken"
	lastColumn       = "SpannerLastBatchMessage"
	oldTokenColumn   = "SpannerOldLeaseToken"
	newTokenColumn   = "SpannerNewLeaseToken"
)

// Queue is one queue and how it is kept. It does not change.
type Queue struct {
	Definition schema.Queue
	// key are the columns of the primary key, in the key's order.
	key []schema.Column
}

// New describes how a queue with this definition, which must be valid, is kept.
func New(def schema.Queue) *Queue {
	q := &Queue{Definition: def}
	for _, part := range def.KeyParts() {
		column, _ := def.KeyColumn(part.Column)
		q.key = append(q.key, column)
	}
	return q
}

// Name is the queue's name as declared.
func (q *Queue) Name() string { return q.Definition.Name }

// Column is a column of the rows that a function of the queue returns.
type Column struct {
	tvf.Column
	Type *spannerpb.Type
}

// MessageColumns are the columns of a message: the key as declared, Payload, DeliverTime.
func (q *Queue) MessageColumns() []Column {
	var columns []Column
	for _, c := range q.Definition.KeyColumns {
		columns = append(columns, Column{tvf.Column{Name: c.Name, Hidden: c.Hidden}, typeOf(c.Type, spannerpb.TypeCode_ENUM)})
	}
	return append(columns,
		Column{tvf.Column{Name: schema.PayloadColumn, Hidden: q.Definition.PayloadHidden}, typeOf(q.Definition.Payload, spannerpb.TypeCode_PROTO)},
		Column{tvf.Column{Name: schema.DeliverTimeColumn}, scalarType(spannerpb.TypeCode_TIMESTAMP)})
}

// ReceiveColumns are the columns of RECEIVE: those of the message, then those of its lease.
func (q *Queue) ReceiveColumns() []Column {
	return append(q.MessageColumns(),
		Column{tvf.Column{Name: expirationColumn}, scalarType(spannerpb.TypeCode_TIMESTAMP)},
		Column{tvf.Column{Name: leaseTokenColumn}, scalarType(spannerpb.TypeCode_STRING)},
		Column{tvf.Column{Name: lastColumn}, scalarType(spannerpb.TypeCode_BOOL)})
}

// RenewColumns are the columns of RENEWLEASE.
func (q *Queue) RenewColumns() []Column {
	return []Column{
		{tvf.Column{Name: oldTokenColumn}, scalarType(spannerpb.TypeCode_STRING)},
		{tvf.Column{Name: newTokenColumn}, scalarType(spannerpb.TypeCode_STRING)},
		{tvf.Column{Name: expirationColumn}, scalarType(spannerpb.TypeCode_TIMESTAMP)},
	}
}

func scalarType(code spannerpb.TypeCode) *spannerpb.Type { return &spannerpb.Type{Code: code} }

// typeOf translates a column's type. A named type is a message or an enum, which only its place can tell: a key cannot
// be a message and a payload cannot be an enum.
func typeOf(t schema.Type, named spannerpb.TypeCode) *spannerpb.Type {
	codes := map[schema.Kind]spannerpb.TypeCode{
		schema.KindBool:      spannerpb.TypeCode_BOOL,
		schema.KindInt64:     spannerpb.TypeCode_INT64,
		schema.KindFloat32:   spannerpb.TypeCode_FLOAT32,
		schema.KindFloat64:   spannerpb.TypeCode_FLOAT64,
		schema.KindNumeric:   spannerpb.TypeCode_NUMERIC,
		schema.KindString:    spannerpb.TypeCode_STRING,
		schema.KindBytes:     spannerpb.TypeCode_BYTES,
		schema.KindDate:      spannerpb.TypeCode_DATE,
		schema.KindTimestamp: spannerpb.TypeCode_TIMESTAMP,
		schema.KindUUID:      spannerpb.TypeCode_UUID,
		schema.KindJSON:      spannerpb.TypeCode_JSON,
	}
	if t.Kind == schema.KindNamed {
		return &spannerpb.Type{Code: named, ProtoTypeFqn: t.Proto}
	}
	return scalarType(codes[t.Kind])
}

// FormatTime writes a time as Spanner does.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
