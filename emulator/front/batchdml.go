package front

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// executeBatchDML answers OK with the status of the first statement that failed inside. A transaction that is begun
// here lives on if at least one statement was executed: the first result carries its id.
func (s *Server) executeBatchDML(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest) (*spannerpb.ExecuteBatchDmlResponse, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	accepted, _, refusal := s.batch(ctx, sess, req.GetStatements())
	if refusal != nil && len(accepted) == 0 {
		return &spannerpb.ExecuteBatchDmlResponse{Status: status.Convert(refusal).Proto()}, nil
	}
	p, err := s.place(ctx, sess, req.GetTransaction(), req.GetRequestOptions().GetTransactionTag())
	if err != nil {
		return nil, err
	}
	var r *spannerpb.ExecuteBatchDmlResponse
	err = p.run(ctx, req.GetLastStatements() && refusal == nil, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error {
		// Again: the schema may have changed while the transaction waited for its turn.
		var touched []string
		accepted, touched, refusal = s.batch(ctx, sess, req.GetStatements())
		if refusal != nil && len(accepted) == 0 {
			r = new(spannerpb.ExecuteBatchDmlResponse)
			return nil
		}
		p.touch(touched)
		b := shallow(req)
		b.Session, b.Transaction, b.Statements = session, sel, accepted
		var err error
		r, err = s.pool.Client().ExecuteBatchDml(ctx, b)
		return err
	})
	if err != nil {
		p.undo(ctx)
		return nil, err
	}
	if refusal != nil && r.GetStatus().GetCode() == int32(codes.OK) {
		r.Status = status.Convert(refusal).Proto()
	}
	if len(r.GetResultSets()) == 0 {
		p.undo(ctx)
		return r, nil
	}
	p.mark(&r.ResultSets[0].Metadata)
	r.PrecommitToken = p.token()
	return r, nil
}

// batch gives the statements for the emulator: those before the first that the queues refuse, and the refusal.
func (s *Server) batch(ctx context.Context, sess ident.Session, all []*spannerpb.ExecuteBatchDmlRequest_Statement) (statements []*spannerpb.ExecuteBatchDmlRequest_Statement, touched []string, refusal error) {
	for i, st := range all {
		kind, names, err := s.classify(ctx, sess, st.GetSql())
		if err == nil && kind != queues.Pass {
			err = status.Error(codes.InvalidArgument, fmt.Sprintf("Statement %d: '%s' is not valid DML.", i, st.GetSql()))
		}
		if err != nil {
			return statements, touched, err
		}
		if sql := s.queues.RewriteClock(st.GetSql()); sql != st.GetSql() {
			st = shallow(st)
			st.Sql = sql
		}
		statements = append(statements, st)
		touched = append(touched, names...)
	}
	return statements, touched, nil
}
