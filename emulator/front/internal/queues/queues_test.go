package queues_test

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

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
	m := send(id, id)
	m.GetSend().DeliverTime = timestamppb.New(at)
	return m
}

func ack(id string, ignore bool) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{Queue: "Tasks", Key: key(id), IgnoreNotFound: ignore}}}
}

func key(parts ...string) *structpb.ListValue {
	l := &structpb.ListValue{}
	for _, p := range parts {
		l.Values = append(l.Values, structpb.NewStringValue(p))
	}
	return l
}

// open runs a statement until cancel, and gives its messages.
type open struct {
	parts  chan *spannerpb.PartialResultSet
	ended  chan error
	cancel context.CancelFunc
}

func (b *bench) open(req *spannerpb.ExecuteSqlRequest) *open {
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	o := &open{parts: make(chan *spannerpb.PartialResultSet, 10000), ended: make(chan error, 1), cancel: cancel}
	go func() {
		o.ended <- b.queues.ServeStream(ctx, b.name, req, func(p *spannerpb.PartialResultSet) error { o.parts <- p; return nil })
	}()
	return o
}

func (o *open) next(t testing.TB) *spannerpb.PartialResultSet {
	t.Helper()
	select {
	case p := <-o.parts:
		return p
	case err := <-o.ended:
		require.FailNow(t, "the stream ended", "%v", err)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "no message within 10 s")
	}
	return nil
}

func (o *open) row(t testing.TB) []*structpb.Value {
	t.Helper()
	for {
		if p := o.next(t); len(p.GetValues()) > 0 {
			return p.GetValues()
		}
	}
}

func TestSmoke(t *testing.T) {
	b := newBench(t, queues.Options{LeaseLength: time.Second}, taskQueue)
	require.NoError(t, b.commit(send("a", "x")))
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')"})
	first := s.next(t)
	require.NotNil(t, first.GetMetadata())
	t.Log(first)
	t.Log(s.row(t))
	for range 5 {
		start := time.Now()
		require.NoError(t, b.commit(send("b", "x")))
		sent := time.Now()
		row := s.row(t)
		t.Log(row[0], sent.Sub(start), time.Since(sent))
		require.NoError(t, b.commit(ack("b", false)))
	}
	start := time.Now()
	t.Log(s.row(t), time.Since(start))
	b.dml("INSERT INTO Tasks (Id, Payload) VALUES ('d', b'y')")
	t.Log(s.row(t))
	t.Log(b.turns.Load())
}
