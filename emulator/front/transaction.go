package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

// beginTransaction begins nothing in the emulator but for read-only transactions, whose timestamp it takes there.
func (s *Server) beginTransaction(ctx context.Context, req *spannerpb.BeginTransactionRequest) (*spannerpb.Transaction, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	switch mode := req.GetOptions().GetMode().(type) {
	case nil:
		return nil, errNoMode
	case *spannerpb.TransactionOptions_ReadOnly_:
		return s.beginReadOnly(ctx, sess, mode.ReadOnly)
	}
	if _, err := s.queues.RewriteMutationKey(ctx, sess.Database, req.GetMutationKey()); err != nil {
		return nil, s.explainMutations(ctx, sess.Database, []*spannerpb.Mutation{req.GetMutationKey()}, err)
	}
	t := s.txns.Begin(req.GetSession(), forBackend(req.GetOptions()))
	t.Follow(clientOf(ctx))
	t.NoteTag(req.GetRequestOptions().GetTransactionTag())
	answer := &spannerpb.Transaction{Id: t.ID()}
	if sess.Props.GetMultiplexed() && !t.Partitioned {
		answer.PrecommitToken = precommitToken(t)
	}
	return answer, nil
}

// beginReadOnly takes the transaction's timestamp. The emulator's transaction is not used further: its session goes
// back, and the next transaction on it takes its place.
func (s *Server) beginReadOnly(ctx context.Context, sess ident.Session, ro *spannerpb.TransactionOptions_ReadOnly) (*spannerpb.Transaction, error) {
	timed := shallow(ro)
	timed.ReturnReadTimestamp = true
	tx, err := s.pool.Begin(ctx, sess.Database, &spannerpb.TransactionOptions{
		Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: timed},
	})
	if err != nil {
		return nil, err
	}
	s.pool.Give(tx.Session)
	answer := &spannerpb.Transaction{Id: ident.NewReadOnly(sess.Props.GetName(), tx.ReadTime).ID()}
	if ro.GetReturnReadTimestamp() {
		answer.ReadTimestamp = tx.ReadTime
	}
	return answer, nil
}

// rollback is OK for whatever is not committed: what there is not need not be rolled back.
func (s *Server) rollback(ctx context.Context, req *spannerpb.RollbackRequest) (*emptypb.Empty, error) {
	if _, err := s.session(ctx, req.GetSession()); err != nil {
		return nil, err
	}
	rw, ro := ident.Transaction(req.GetTransactionId())
	switch {
	case ro != nil:
		return nil, txn.ErrNotReadWrite
	case rw == nil:
		return new(emptypb.Empty), nil
	}
	t, err := s.txns.Find(req.GetSession(), *rw)
	if err != nil {
		return nil, err
	}
	if err := t.Rollback(ctx); err != nil {
		return nil, err
	}
	return new(emptypb.Empty), nil
}
