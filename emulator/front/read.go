package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
)

func (s *Server) read(ctx context.Context, req *spannerpb.ReadRequest) (*spannerpb.ResultSet, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	if err := s.queues.AllowRead(ctx, sess.Database, sess.Role(), req.GetTable()); err != nil {
		return nil, err
	}
	p, token, err := s.placeOfPartition(ctx, sess, req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return nil, err
	}
	return p.resultSet(ctx, false, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.ResultSet, error) {
		r := shallow(req)
		r.Session, r.Transaction, r.PartitionToken = session, sel, token
		return s.pool.Client().Read(ctx, r)
	})
}

func (s *Server) streamingRead(req *spannerpb.ReadRequest, out grpc.ServerStream) error {
	ctx := out.Context()
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return err
	}
	if err := s.queues.AllowRead(ctx, sess.Database, sess.Role(), req.GetTable()); err != nil {
		return err
	}
	p, token, err := s.placeOfPartition(ctx, sess, req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return err
	}
	return p.stream(out, false, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (resultStream, error) {
		r := shallow(req)
		r.Session, r.Transaction, r.PartitionToken = session, sel, token
		return s.pool.Client().StreamingRead(ctx, r)
	})
}
