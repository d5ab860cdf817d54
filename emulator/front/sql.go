package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func (s *Server) executeSQL(ctx context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	kind, touched, err := s.classify(ctx, sess, req.GetSql())
	if err != nil {
		return nil, err
	}
	if kind != queues.Pass {
		return s.queues.ServeUnary(ctx, sess.Database, req)
	}
	p, token, err := s.placeOfPartition(ctx, sess, req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return nil, err
	}
	p.touch(touched)
	rs, err := p.resultSet(ctx, req.GetLastStatement(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.ResultSet, error) {
		r, err := s.statement(ctx, sess, req, session, sel, token)
		if err != nil {
			return nil, err
		}
		return s.pool.Client().ExecuteSql(ctx, r)
	})
	return rs, s.explainSQL(ctx, sess, req.GetSql(), err)
}

func (s *Server) executeStreamingSQL(req *spannerpb.ExecuteSqlRequest, out grpc.ServerStream) error {
	ctx := out.Context()
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return err
	}
	kind, touched, err := s.classify(ctx, sess, req.GetSql())
	if err != nil {
		return err
	}
	if kind != queues.Pass {
		return s.queues.ServeStream(ctx, sess.Database, req, func(m *spannerpb.PartialResultSet) error { return out.SendMsg(m) })
	}
	p, token, err := s.placeOfPartition(ctx, sess, req.GetTransaction(), req.GetRequestOptions().GetTransactionTag(), req.GetPartitionToken())
	if err != nil {
		return err
	}
	p.touch(touched)
	err = p.stream(out, req.GetLastStatement(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (resultStream, error) {
		r, err := s.statement(ctx, sess, req, session, sel, token)
		if err != nil {
			return nil, err
		}
		return s.pool.Client().ExecuteStreamingSql(ctx, r)
	})
	return s.explainSQL(ctx, sess, req.GetSql(), err)
}

// classify says who serves a statement, or refuses it.
func (s *Server) classify(ctx context.Context, sess ident.Session, sql string) (kind queues.Kind, touched []string, err error) {
	if err := s.queues.AllowStatement(ctx, sess.Database, sess.Role(), sql); err != nil {
		return queues.Pass, nil, err
	}
	return s.queues.Statement(ctx, sess.Database, sql)
}

// statement is the request for the emulator. The queues are asked again: the schema may have changed while the
// transaction waited for its turn.
func (s *Server) statement(ctx context.Context, sess ident.Session, req *spannerpb.ExecuteSqlRequest, session string, sel *spannerpb.TransactionSelector, token []byte) (*spannerpb.ExecuteSqlRequest, error) {
	if _, _, err := s.classify(ctx, sess, req.GetSql()); err != nil {
		return nil, err
	}
	r := shallow(req)
	r.Session, r.Transaction, r.PartitionToken = session, sel, token
	r.Sql = s.queues.RewriteClock(req.GetSql())
	return r, nil
}
