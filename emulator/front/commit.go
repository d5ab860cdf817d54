package front

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

// commitTimeout bounds a single-use commit that the emulator does not answer.
const commitTimeout = time.Minute

func (s *Server) commit(ctx context.Context, req *spannerpb.CommitRequest) (*spannerpb.CommitResponse, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	switch sel := req.GetTransaction().(type) {
	case *spannerpb.CommitRequest_SingleUseTransaction:
		return s.commitSingleUse(ctx, sess, req)
	case *spannerpb.CommitRequest_TransactionId:
		return s.commitTransaction(ctx, sess, req, sel.TransactionId)
	}
	return nil, status.Error(codes.InvalidArgument, "No value provided for required field: CommitRequest.transaction")
}

func (s *Server) commitTransaction(ctx context.Context, sess ident.Session, req *spannerpb.CommitRequest, id []byte) (*spannerpb.CommitResponse, error) {
	rw, ro := ident.Transaction(id)
	switch {
	case ro != nil && ro.Of(req.GetSession()):
		return nil, txn.ErrNotReadWrite
	case rw == nil:
		return nil, txn.ErrNotFound(id)
	}
	t, err := s.txns.Find(req.GetSession(), *rw)
	if err != nil {
		return nil, err
	}
	t.Follow(clientOf(ctx))
	t.NoteTag(req.GetRequestOptions().GetTransactionTag())
	return t.Commit(ctx, len(req.GetMutations()) > 0, func(ctx context.Context, tx *backend.Tx) (*spannerpb.CommitResponse, error) {
		ms, touched, err := s.rewriteMutations(ctx, sess, req.GetMutations())
		if err != nil {
			return nil, err
		}
		r := shallow(req)
		r.Session, r.PrecommitToken, r.Mutations = tx.Session.Name, nil, ms
		r.Transaction = &spannerpb.CommitRequest_TransactionId{TransactionId: tx.ID}
		resp, err := s.pool.Client().Commit(ctx, r)
		if err == nil {
			s.queues.Committed(t.Database, append(t.Touched(), touched...))
		}
		return resp, err
	})
}

// rewriteMutations gives the mutations for the emulator, if the session may make them.
func (s *Server) rewriteMutations(ctx context.Context, sess ident.Session, ms []*spannerpb.Mutation) (out []*spannerpb.Mutation, touched []string, err error) {
	if err := s.queues.AllowMutations(ctx, sess.Database, sess.Role(), ms); err != nil {
		return nil, nil, err
	}
	out, touched, err = s.queues.RewriteMutations(ctx, sess.Database, ms)
	return out, touched, s.explainMutations(ctx, sess.Database, ms, err)
}

// commitSingleUse takes its turn as any other write does. Once it has come, the commit is not given up any more. What the
// mutations mean is judged by the schema of that moment.
func (s *Server) commitSingleUse(ctx context.Context, sess ident.Session, req *spannerpb.CommitRequest) (*spannerpb.CommitResponse, error) {
	var resp *spannerpb.CommitResponse
	err := s.txns.InTurn(ctx, sess.Database, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		defer cancel()
		ms, touched, err := s.rewriteMutations(ctx, sess, req.GetMutations())
		if err != nil {
			return err
		}
		err = s.pool.With(ctx, sess.Database, func(session string) error {
			r := shallow(req)
			r.Session, r.PrecommitToken, r.Mutations = session, nil, ms
			var err error
			resp, err = s.pool.Client().Commit(ctx, r)
			return err
		})
		if err == nil {
			s.queues.Committed(sess.Database, touched)
		}
		return err
	})
	return resp, err
}
