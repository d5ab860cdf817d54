package backing

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/schema"
)

// Send translates a Send mutation. now is the queue's clock: it is the DeliverTime of a message that gives none, or
// one that is past.
func (q *Queue) Send(m *spannerpb.Mutation_Send, now time.Time) (*spannerpb.Mutation, error) {
	if err := q.checkKey("Send", m.GetKey()); err != nil {
		return nil, err
	}
	if q.Definition.Options.DisableSend {
		return nil, q.SendDisabled()
	}
	due := now
	if t := m.GetDeliverTime(); t != nil {
		if err := t.CheckValid(); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "Send to queue %s: deliver_time: %v", q.Name(), err)
		}
		if at := t.AsTime(); at.After(now) {
			due = at
		}
	}
	payload := m.GetPayload()
	if payload == nil {
		payload = structpb.NewNullValue()
	}
	columns, values := q.writable(m.GetKey())
	columns = append(columns, schema.PayloadColumn, schema.DeliverTimeColumn, generationColumn, sentColumn)
	values = append(values, payload,
		structpb.NewStringValue(FormatTime(due)),
		structpb.NewStringValue(rand.Text()),
		structpb.NewStringValue(FormatTime(time.Now())))
	return write(func(w *spannerpb.Mutation_Write) *spannerpb.Mutation {
		return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: w}}
	}, q.Name(), columns, values), nil
}

// SendDisabled is the refusal of a queue whose option disable_send is set.
func (q *Queue) SendDisabled() error {
	return status.Errorf(codes.FailedPrecondition, "Queue %s takes no messages: its option disable_send is set.", q.Name())
}

// MakesKeys reports whether the database makes a part of the key.
func (q *Queue) MakesKeys() bool {
	return slices.ContainsFunc(q.key, func(c schema.Column) bool { return c.Generated != "" })
}

// Ack translates an Ack mutation. An update that sets nothing fails with NOT_FOUND if the row is not there, and so
// makes the delete behind it an asserted one. Of a queue that MakesKeys it asserts the parts that the sender gives.
func (q *Queue) Ack(m *spannerpb.Mutation_Ack) ([]*spannerpb.Mutation, error) {
	if err := q.checkKey("Ack", m.GetKey()); err != nil {
		return nil, err
	}
	remove := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{
		Table:  q.Name(),
		KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{m.GetKey()}},
	}}}
	if m.GetIgnoreNotFound() {
		return []*spannerpb.Mutation{remove}, nil
	}
	columns, values := q.writable(m.GetKey())
	if q.MakesKeys() {
		// Where a part of the key is generated the emulator wants every column with a default written. What is written
		// does not matter: the row is deleted.
		stamp := structpb.NewStringValue(FormatTime(time.Now()))
		columns = append(columns, schema.DeliverTimeColumn, generationColumn, sentColumn)
		values = append(values, stamp, structpb.NewStringValue(""), stamp)
	}
	assert := write(func(w *spannerpb.Mutation_Write) *spannerpb.Mutation {
		return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: w}}
	}, q.Name(), columns, values)
	return []*spannerpb.Mutation{assert, remove}, nil
}

func write(as func(*spannerpb.Mutation_Write) *spannerpb.Mutation, table string, columns []string, values []*structpb.Value) *spannerpb.Mutation {
	return as(&spannerpb.Mutation_Write{Table: table, Columns: columns, Values: []*structpb.ListValue{{Values: values}}})
}

// writable pairs the key's columns with its values, without the generated ones, which the database writes itself.
func (q *Queue) writable(key *structpb.ListValue) (columns []string, values []*structpb.Value) {
	for i, c := range q.key {
		if c.Generated == "" {
			columns = append(columns, c.Name)
			values = append(values, key.GetValues()[i])
		}
	}
	return columns, values
}

// checkKey wants one value for each column of the primary key.
func (q *Queue) checkKey(what string, key *structpb.ListValue) error {
	if len(key.GetValues()) == len(q.key) {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "%s: the key of queue %s is (%s): %d value(s) are needed, found %d.",
		what, q.Name(), strings.Join(q.keyNames(), ", "), len(q.key), len(key.GetValues()))
}

// SentKey returns the key under which the row of a Send can be read. False: only the database knows it, because it
// writes a part of it.
func (q *Queue) SentKey(m *spannerpb.Mutation_Send) (string, bool) {
	for _, c := range q.key {
		if c.Generated != "" || c.AllowCommitTimestamp {
			return "", false
		}
	}
	key, err := EncodeKey(m.GetKey())
	return key, err == nil
}

// RefuseWrite is the refusal of a mutation that treats the queue as a table.
func (q *Queue) RefuseWrite(operation, instead string) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf("%s cannot be applied to queue %s: %s.", operation, q.Name(), instead))
}
