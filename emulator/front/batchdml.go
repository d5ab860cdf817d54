package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// executeBatchDML answers OK with the status of the first statement that failed inside. A transaction that is begun
// here lives on if at least one statement was executed: the first result carries its id.
func (s *Server) executeBatchDML(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest) (*spannerpb.ExecuteBatchDmlResponse, error) {
	p, err := s.place(ctx, req.GetSession(), req.GetTransaction(), req.GetRequestOptions().GetTransactionTag())
	if err != nil {
		return nil, err
	}
	var r *spannerpb.ExecuteBatchDmlResponse
	err = p.run(ctx, req.GetLastStatements(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error {
		b := shallow(req)
		b.Session, b.Transaction = session, sel
		var err error
		r, err = s.pool.Client().ExecuteBatchDml(ctx, b)
		return err
	})
	if err != nil {
		p.undo(ctx)
		return nil, err
	}
	if len(r.GetResultSets()) == 0 {
		p.undo(ctx)
		return r, nil
	}
	p.mark(&r.ResultSets[0].Metadata)
	r.PrecommitToken = p.token()
	return r, nil
}
