package backend

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Supersede ends a partitioned DML transaction whose statement failed, and gives its session back. The emulator keeps
// the locks of such a one and refuses to roll it back; it lets go of them when the next transaction of the session is
// used (measured). So this commits one that does nothing. It needs the database's turn.
func (p *Pool) Supersede(ctx context.Context, t *Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if err := p.supersede(ctx, t); err != nil {
		p.logger.Warn("front: a failed partitioned DML statement may still hold its locks in the emulator", "database", t.Session.Database, "error", err)
		return
	}
	p.Give(t.Session)
}

func (p *Pool) supersede(ctx context.Context, t *Tx) error {
	if holds, err := p.Holds(ctx, t); err != nil || !holds {
		return err
	}
	next, err := p.client.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{
		Session: t.Session.Name,
		Options: &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)}},
	})
	if err != nil {
		return err
	}
	_, err = p.client.Commit(ctx, &spannerpb.CommitRequest{
		Session:     t.Session.Name,
		Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: next.GetId()},
	})
	return err
}
