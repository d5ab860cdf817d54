package backing

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
	"github.com/spanqueue/spanqueue/schema"
)

// Message is a row of the queue.
type Message struct {
	ID  ledger.ID
	Due time.Time // DeliverTime
	// Values are those of MessageColumns; nil if the row was read from the log.
	Values []*structpb.Value
}

// ReadLog is the request for what was sent at or after a time. Read its answer with LogMessages.
func (q *Queue) ReadLog(since time.Time) *spannerpb.ReadRequest {
	from := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(FormatTime(since))}}
	return &spannerpb.ReadRequest{
		Table: q.Name(),
		Index: q.indexName(),
		KeySet: &spannerpb.KeySet{Ranges: []*spannerpb.KeyRange{{
			StartKeyType: &spannerpb.KeyRange_StartClosed{StartClosed: from},
			EndKeyType:   &spannerpb.KeyRange_EndClosed{EndClosed: &structpb.ListValue{}},
		}}},
		Columns: append(q.keyNames(), schema.DeliverTimeColumn, generationColumn),
	}
}

// LogMessages reads the answer to ReadLog.
func (q *Queue) LogMessages(rs *spannerpb.ResultSet) ([]Message, error) {
	messages := make([]Message, 0, len(rs.GetRows()))
	for _, row := range rs.GetRows() {
		m, err := q.readHead(row.GetValues(), len(q.key)+2)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// ReadMessages is the request for messages by key. Read its answer with Messages; keys that are not there are missing
// from it, and the order is the database's.
func (q *Queue) ReadMessages(keys []*structpb.ListValue) *spannerpb.ReadRequest {
	return &spannerpb.ReadRequest{
		Table:   q.Name(),
		KeySet:  &spannerpb.KeySet{Keys: keys},
		Columns: append(q.keyNames(), schema.DeliverTimeColumn, generationColumn, schema.PayloadColumn),
	}
}

// Messages reads the answer to ReadMessages.
func (q *Queue) Messages(rs *spannerpb.ResultSet) ([]Message, error) {
	n := len(q.key)
	place := make(map[string]int, n) // of each key column in the key
	for i, c := range q.key {
		place[c.Name] = i
	}
	messages := make([]Message, 0, len(rs.GetRows()))
	for _, row := range rs.GetRows() {
		values := row.GetValues()
		m, err := q.readHead(values, n+3)
		if err != nil {
			return nil, err
		}
		for _, c := range q.Definition.KeyColumns {
			m.Values = append(m.Values, values[place[c.Name]])
		}
		m.Values = append(m.Values, values[n+2], values[n])
		messages = append(messages, m)
	}
	return messages, nil
}

// ReadIdentities is the request for which of the keys are there, and in which generation. Read its answer with
// LogMessages.
func (q *Queue) ReadIdentities(keys []*structpb.ListValue) *spannerpb.ReadRequest {
	return &spannerpb.ReadRequest{
		Table:   q.Name(),
		KeySet:  &spannerpb.KeySet{Keys: keys},
		Columns: append(q.keyNames(), schema.DeliverTimeColumn, generationColumn),
	}
}

// ReadAny is the request that tells whether there is any message.
func (q *Queue) ReadAny() *spannerpb.ReadRequest {
	return &spannerpb.ReadRequest{Table: q.Name(), KeySet: &spannerpb.KeySet{All: true}, Columns: q.keyNames(), Limit: 1}
}

// readHead reads what all requests ask for first: key, DeliverTime, generation.
func (q *Queue) readHead(values []*structpb.Value, want int) (Message, error) {
	n := len(q.key)
	if len(values) != want {
		return Message{}, fmt.Errorf("queue %s: the emulator answered %d columns, not %d", q.Name(), len(values), want)
	}
	due, err := time.Parse(time.RFC3339Nano, values[n].GetStringValue())
	if err != nil {
		return Message{}, fmt.Errorf("queue %s: DeliverTime: %w", q.Name(), err)
	}
	key, err := EncodeKey(&structpb.ListValue{Values: values[:n:n]})
	if err != nil {
		return Message{}, fmt.Errorf("queue %s: %w", q.Name(), err)
	}
	return Message{ID: ledger.ID{Key: key, Generation: values[n+1].GetStringValue()}, Due: due}, nil
}

func (q *Queue) keyNames() []string {
	names := make([]string, len(q.key), len(q.key)+3)
	for i, c := range q.key {
		names[i] = c.Name
	}
	return names
}

// EncodeKey turns a key into text that is equal for equal keys. Keys from the emulator have one form each; those from
// a client may have several (such as the hexadecimal digits of a UUID).
func EncodeKey(key *structpb.ListValue) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("key %v: %w", key, err)
	}
	return string(b), nil
}

// DecodeKey undoes EncodeKey.
func DecodeKey(key string) (*structpb.ListValue, error) {
	var list structpb.ListValue
	if err := proto.Unmarshal([]byte(key), &list); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return &list, nil
}
