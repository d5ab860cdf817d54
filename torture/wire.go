package main

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// wire is what a worker's client sends and gets. It counts the requests, and tells which messages come and when a Commit
// that acknowledges is under way.
type wire struct {
	*teller

	mu     sync.Mutex
	counts map[rpcKind]int64
}

func newWire(t *teller) *wire { return &wire{teller: t, counts: make(map[rpcKind]int64)} }

func (w *wire) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream)}
}

func (w *wire) count(method string, req any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[kindOf(method, req)]++
}

// rpcs returns the counts so far.
func (w *wire) rpcs() map[rpcKind]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	w.count(method, req)
	tag := tagOf(req)
	if path.Base(method) == "Commit" && isWork(tag) {
		w.tell(eventCommit, "")
		defer w.tell(eventAnswered, "")
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil && strings.HasPrefix(tag, "claim=") {
		w.came(claimedBy(req))
	}
	return err
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	return &wireStream{ClientStream: s, wire: w, method: method}, err
}

func (w *wire) came(ids []string) {
	for _, id := range ids {
		w.tell(eventCame, id)
	}
}

// wireStream is a query or a read.
type wireStream struct {
	grpc.ClientStream
	wire    *wire
	method  string
	receive bool
}

func (s *wireStream) SendMsg(req any) error {
	s.wire.count(s.method, req)
	s.receive = strings.Contains(sqlOf(req), "FROM RECEIVE_")
	return s.ClientStream.SendMsg(req)
}

func (s *wireStream) RecvMsg(reply any) error {
	err := s.ClientStream.RecvMsg(reply)
	// A message is one row, and its id the first column.
	if row, ok := reply.(*spannerpb.PartialResultSet); err == nil && ok && s.receive && len(row.GetValues()) > 0 {
		s.wire.came([]string{row.GetValues()[0].GetStringValue()})
	}
	return err
}

// claimedBy returns the ids of the messages that a queue table's claim has written.
func claimedBy(req any) []string {
	commit, _ := req.(*spannerpb.CommitRequest)
	var ids []string
	for _, m := range commit.GetMutations() {
		update := m.GetUpdate()
		i := slices.Index(update.GetColumns(), "Id")
		if i < 0 || !slices.Contains(update.GetColumns(), "LeaseToken") {
			continue
		}
		for _, values := range update.GetValues() {
			ids = append(ids, idAt(values, i))
		}
	}
	return ids
}

func idAt(row *structpb.ListValue, i int) string { return row.GetValues()[i].GetStringValue() }
