package main

import (
	"context"
	"io"
	"path"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// alone lets a client run one read-write transaction at a time. The bare emulator wants that: it keeps one a session, and
// Google's client runs all of its transactions on one session. Behind the front nobody needs it.
//
// It watches the client's requests: a transaction has the turn from the request that begins it to the answer of the
// Commit or Rollback that ends it, or to the first failure after which the client sends neither. Transactions of other
// processes are not its business: the emulator aborts those that meet.
type alone struct {
	turn chan struct{} // holds one value while a transaction has the turn

	mu sync.Mutex
	id string // of the transaction that has the turn; empty while it has no answer yet
}

func newAlone() *alone { return &alone{turn: make(chan struct{}, 1)} }

func (a *alone) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(a.unary), grpc.WithChainStreamInterceptor(a.stream)}
}

// take waits for the turn.
func (a *alone) take(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// begun notes which transaction has the turn.
func (a *alone) begun(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.id = string(id)
}

// give gives up the turn of a transaction, if it has it; "" is the one that has no answer yet.
func (a *alone) give(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.id != id {
		return
	}
	a.id = ""
	select {
	case <-a.turn:
	default:
	}
}

func (a *alone) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	begins := beginsTransaction(req)
	if begins {
		if err := a.take(ctx); err != nil {
			return err
		}
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	id := begunBy(reply)
	switch {
	case begins && (err != nil || len(id) == 0):
		a.give("")
	case begins:
		a.begun(id)
	case ends(method) || status.Code(err) == codes.Aborted:
		if id := transactionOf(req); len(id) > 0 {
			a.give(string(id))
		}
	}
	return err
}

func (a *alone) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	return &aloneStream{ClientStream: s, alone: a}, err
}

// aloneStream is a statement or a read that may begin a transaction.
type aloneStream struct {
	grpc.ClientStream
	alone    *alone
	beginner bool   // it has begun one whose id has not come
	id       string // of the transaction that it is part of
}

func (s *aloneStream) SendMsg(req any) error {
	s.id = string(transactionOf(req))
	if beginsTransaction(req) {
		if err := s.alone.take(s.Context()); err != nil {
			return err
		}
		s.beginner = true
	}
	err := s.ClientStream.SendMsg(req)
	if err != nil && err != io.EOF { // after io.EOF the reason comes by RecvMsg
		s.failed(err)
	}
	return err
}

func (s *aloneStream) RecvMsg(reply any) error {
	err := s.ClientStream.RecvMsg(reply)
	if err != nil {
		s.failed(err)
		return err
	}
	if id := begunBy(reply); s.beginner && len(id) > 0 {
		s.beginner, s.id = false, string(id)
		s.alone.begun(id)
	}
	return nil
}

func (s *aloneStream) failed(err error) {
	switch {
	case s.beginner:
		s.beginner = false
		s.alone.give("")
	case s.id != "" && status.Code(err) == codes.Aborted:
		s.alone.give(s.id)
	}
}

// ends says whether a transaction is over after a call, whatever the answer.
func ends(method string) bool {
	name := path.Base(method)
	return name == "Commit" || name == "Rollback"
}

// beginsTransaction says whether a request begins a read-write transaction.
func beginsTransaction(req any) bool {
	switch r := req.(type) {
	case *spannerpb.BeginTransactionRequest:
		return r.GetOptions().GetReadWrite() != nil
	case interface {
		GetTransaction() *spannerpb.TransactionSelector
	}:
		return r.GetTransaction().GetBegin().GetReadWrite() != nil
	}
	return false
}

// transactionOf is the id of the transaction that a request is part of.
func transactionOf(req any) []byte {
	switch r := req.(type) {
	case *spannerpb.CommitRequest:
		return r.GetTransactionId()
	case *spannerpb.RollbackRequest:
		return r.GetTransactionId()
	case interface {
		GetTransaction() *spannerpb.TransactionSelector
	}:
		return r.GetTransaction().GetId()
	}
	return nil
}

// begunBy is the id of the transaction that an answer says was begun.
func begunBy(reply any) []byte {
	switch r := reply.(type) {
	case *spannerpb.Transaction:
		return r.GetId()
	case *spannerpb.ExecuteBatchDmlResponse:
		for _, set := range r.GetResultSets() {
			if id := set.GetMetadata().GetTransaction().GetId(); len(id) > 0 {
				return id
			}
		}
	case interface {
		GetMetadata() *spannerpb.ResultSetMetadata
	}:
		return r.GetMetadata().GetTransaction().GetId()
	}
	return nil
}
