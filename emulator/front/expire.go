package front

import (
	"context"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/expiry"
)

// expiring is the emulator as row deletion sees it. It implements expiry.Store.
type expiring struct{ *Server }

// HasPolicies implements expiry.Store. Databases of the PostgreSQL dialect pass through untouched.
func (e expiring) HasPolicies(ctx context.Context, database string) (bool, error) {
	dialect, err := e.dialect(ctx, database)
	return dialect != databasepb.DatabaseDialect_POSTGRESQL, err
}

// Query implements expiry.Store.
func (e expiring) Query(ctx context.Context, database string, req *spannerpb.ExecuteSqlRequest) (rs *spannerpb.ResultSet, err error) {
	err = e.pool.With(ctx, database, func(session string) error {
		req.Session = session
		rs, err = e.pool.Client().ExecuteSql(ctx, req)
		return err
	})
	return rs, err
}

// InTurn implements expiry.Store.
func (e expiring) InTurn(ctx context.Context, database string, f func(expiry.Query) ([]*spannerpb.Mutation, error)) error {
	return e.txns.InTurn(ctx, database, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		defer cancel()
		tx, err := e.pool.Begin(ctx, database, &spannerpb.TransactionOptions{
			Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)},
		})
		if err != nil {
			return err
		}
		ms, err := f(func(req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
			req.Session, req.Transaction = tx.Session.Name, tx.Selector()
			return e.pool.Client().ExecuteSql(ctx, req)
		})
		if err == nil && len(ms) > 0 {
			_, err = e.pool.Client().Commit(ctx, &spannerpb.CommitRequest{
				Session:     tx.Session.Name,
				Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx.ID},
				Mutations:   ms,
			})
			if err == nil {
				e.pool.Give(tx.Session)
				return nil
			}
		}
		e.pool.Rollback(ctx, tx)
		return err
	})
}
