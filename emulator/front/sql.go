package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
)

func (s *Server) executeSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	p, token, err := s.placeOfPartition(ctx, req.GetSession(), req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return nil, err
	}
	return p.resultSet(ctx, req.GetLastStatement(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.ResultSet, error) {
		r := shallow(req)
		r.Session, r.Transaction, r.PartitionToken = session, sel, token
		return s.pool.Client().ExecuteSql(ctx, r)
	})
}

func (s *Server) executeStreamingSQL(req *spannerpb.ExecuteSqlRequest, out grpc.ServerStream) error {
	p, token, err := s.placeOfPartition(out.Context(), req.GetSession(), req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return err
	}
	return p.stream(out, req.GetLastStatement(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (resultStream, error) {
		r := shallow(req)
		r.Session, r.Transaction, r.PartitionToken = session, sel, token
		return s.pool.Client().ExecuteStreamingSql(ctx, r)
	})
}
