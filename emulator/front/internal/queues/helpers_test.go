package queues_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

const taskQueue = `CREATE QUEUE Tasks (
  Id STRING(36) NOT NULL,
  Payload BYTES(MAX) NOT NULL,
) PRIMARY KEY (Id)`

func send(id, payload string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{
		Queue: "Tasks", Key: key(id), Payload: structpb.NewStringValue(base64.StdEncoding.EncodeToString([]byte(payload))),
	}}}
}

func sendAt(id string, at time.Time) *spannerpb.Mutation {
	m := send(id, "")
	m.GetSend().DeliverTime = timestamppb.New(at)
	return m
}

func ack(id string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{Queue: "Tasks", Key: key(id)}}}
}

func key(parts ...string) *structpb.ListValue {
	l := &structpb.ListValue{}
	for _, p := range parts {
		l.Values = append(l.Values, structpb.NewStringValue(p))
	}
	return l
}

// patience bounds every wait for something that should come.
const patience = time.Minute

// open is a running statement. A message is taken from it only when the test asks for one.
type open struct {
	parts  chan *spannerpb.PartialResultSet
	ended  chan error
	cancel context.CancelFunc
}

// receive opens SELECT * of RECEIVE_Tasks with the arguments.
func (b *bench) receive(arguments string) *open {
	return b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks(" + arguments + ")"})
}

func (b *bench) open(req *spannerpb.ExecuteSqlRequest) *open {
	ctx, cancel := context.WithCancel(context.Background())
	o := &open{parts: make(chan *spannerpb.PartialResultSet), ended: make(chan error, 1), cancel: cancel}
	go func() {
		o.ended <- b.queues.ServeStream(ctx, b.name, req, func(p *spannerpb.PartialResultSet) error {
			select {
			case o.parts <- p:
				return nil
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		})
	}()
	b.t.Cleanup(cancel)
	return o
}

// next is the next message of the stream.
func (o *open) next(t testing.TB) *spannerpb.PartialResultSet {
	t.Helper()
	select {
	case p := <-o.parts:
		return p
	case err := <-o.ended:
		require.FailNow(t, "the stream ended", "%v", err)
	case <-time.After(patience):
		require.FailNow(t, "no message came")
	}
	return nil
}

// message is a row of SELECT *.
type message struct {
	id, payload, lease string
	due, expires       time.Time
	last               bool
	resume             []byte
}

func (o *open) message(t testing.TB) message {
	t.Helper()
	for {
		p := o.next(t)
		if len(p.GetValues()) == 0 {
			continue
		}
		v := p.GetValues()
		require.Len(t, v, 6)
		payload, err := base64.StdEncoding.DecodeString(v[1].GetStringValue())
		require.NoError(t, err)
		return message{
			id: v[0].GetStringValue(), payload: string(payload), lease: v[4].GetStringValue(),
			due: parseTime(t, v[2]), expires: parseTime(t, v[3]), last: v[5].GetBoolValue(), resume: p.GetResumeToken(),
		}
	}
}

func parseTime(t testing.TB, v *structpb.Value) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, v.GetStringValue())
	require.NoError(t, err)
	return at
}

// ids takes n messages and returns their ids.
func (o *open) ids(t testing.TB, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		ids = append(ids, o.message(t).id)
	}
	return ids
}

// silent checks that no message comes for a while.
func (o *open) silent(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case p := <-o.parts:
		require.FailNow(t, "a message came", "%v", p)
	case err := <-o.ended:
		require.FailNow(t, "the stream ended", "%v", err)
	case <-time.After(d):
	}
}

// until waits for a time.
func until(at time.Time) { <-time.After(time.Until(at)) }

// end returns how the stream ended.
func (o *open) end(t testing.TB) error {
	t.Helper()
	for {
		select {
		case <-o.parts:
		case err := <-o.ended:
			return err
		case <-time.After(patience):
			require.FailNow(t, "the stream did not end")
		}
	}
}

func quoted(tokens []string) string {
	list := ""
	for _, t := range tokens {
		list += "'" + t + "', "
	}
	return "[" + list + "'no token']"
}

// renewal is a row of RENEWLEASE_Tasks.
type renewal struct {
	old, new string // new: "" for NULL
	expires  time.Time
}

func (b *bench) renew(tokens ...string) []renewal {
	b.t.Helper()
	rs, err := b.queues.ServeUnary(context.Background(), b.name, &spannerpb.ExecuteSqlRequest{
		Sql: "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => " + quoted(tokens) + ")",
	})
	require.NoError(b.t, err)
	var rows []renewal
	for _, row := range rs.GetRows() {
		v := row.GetValues()
		r := renewal{old: v[0].GetStringValue(), new: v[1].GetStringValue()}
		if r.new != "" {
			r.expires = parseTime(b.t, v[2])
		}
		rows = append(rows, r)
	}
	return rows
}

func insertUser(id int) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
		Table: "Users", Columns: []string{"Id"}, Values: []*structpb.ListValue{key(fmt.Sprint(id))},
	}}}
}

func deleteUser(id int) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{
		Table: "Users", KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{key(fmt.Sprint(id))}},
	}}}
}

func sendChild(id, n string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{
		Queue: "Child", Key: key(id, n), Payload: structpb.NewStringValue("x"),
	}}}
}

func ackChild(id, n string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{Queue: "Child", Key: key(id, n)}}}
}
