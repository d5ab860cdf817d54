package backend

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Tx is an open transaction of the emulator, and the session that it has for itself.
type Tx struct {
	Session *Session
	ID      []byte
	// ReadTime is set for read-only transactions that asked for it.
	ReadTime *timestamppb.Timestamp
}

// Selector names the transaction in requests.
func (t *Tx) Selector() *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: t.ID}}
}

const (
	rollbackTries   = 3
	rollbackTimeout = 10 * time.Second
	rollbackPause   = 50 * time.Millisecond
)

// Begin begins a transaction on a session of its own. In the emulator that takes no lock. It is not given up when ctx
// ends: a transaction whose id got lost could not be rolled back.
func (p *Pool) Begin(ctx context.Context, database string, o *spannerpb.TransactionOptions) (*Tx, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	s, err := p.Take(ctx, database)
	if err != nil {
		return nil, err
	}
	t, err := p.client.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: s.Name, Options: o})
	if unknownSession(err) {
		p.Drop(database)
		if s, err = p.Create(ctx, database, nil); err != nil {
			return nil, err
		}
		t, err = p.client.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: s.Name, Options: o})
	}
	if err != nil {
		p.Give(s)
		return nil, err
	}
	return &Tx{Session: s, ID: t.GetId(), ReadTime: t.GetReadTimestamp()}, nil
}

// Rollback ends the transaction and gives its session back. ctx should not be one that a client can end.
func (p *Pool) Rollback(ctx context.Context, t *Tx) {
	if err := p.EndTx(ctx, t); err == nil {
		p.Give(t.Session)
	}
}

// EndTx rolls the transaction back and keeps its session with the caller, unless it cannot be done: then session and
// transaction are set aside for another try, and the caller has lost both.
func (p *Pool) EndTx(ctx context.Context, t *Tx) error {
	var err error
	for try := range rollbackTries {
		if try > 0 {
			select {
			case <-time.After(rollbackPause << try):
			case <-ctx.Done():
			}
		}
		if err = p.rollback(ctx, t); err == nil {
			return nil
		}
	}
	p.logger.Warn("front: a transaction of the emulator could not be rolled back yet", "session", t.Session.Name, "error", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = append(p.stuck, t)
	return err
}

func (p *Pool) rollback(ctx context.Context, t *Tx) error {
	ctx, cancel := context.WithTimeout(ctx, rollbackTimeout)
	defer cancel()
	if holds, err := p.Holds(ctx, t); err != nil || !holds {
		return err
	}
	_, err := p.client.Rollback(ctx, &spannerpb.RollbackRequest{Session: t.Session.Name, TransactionId: t.ID})
	switch status.Code(err) {
	case codes.OK, codes.NotFound, codes.FailedPrecondition, codes.Aborted, codes.InvalidArgument:
		return nil // rolled back, or nothing is open there any more
	}
	return err
}

// unknownSession tells whether the emulator answered that it has no such session.
func unknownSession(err error) bool {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.NotFound {
		return false
	}
	for _, d := range st.Details() {
		if r, ok := d.(*errdetails.ResourceInfo); ok && r.GetResourceType() == sessionType {
			return true
		}
	}
	return false
}

const sessionType = "type.googleapis.com/google.spanner.v1.Session"
