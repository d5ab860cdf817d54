package front

import (
	"context"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// partitionLife is how long partitions can be read, as on the service.
const partitionLife = time.Hour

var (
	errNotReadOnly      = status.Error(codes.InvalidArgument, "Partitioned reads can only be performed in a read-only transaction.")
	errPartitionedQueue = status.Error(codes.InvalidArgument, "Receiving and renewing cannot be partitioned: they need a single-use, strong, read-only transaction.")
	errPartitionToken   = status.Error(codes.InvalidArgument, "Invalid partition token.")
	errOtherTransaction = status.Error(codes.InvalidArgument, "Partitioned request was created for a different transaction.")
	errPartitionGone    = status.Error(codes.FailedPrecondition, "The partition token is too old, or of a server that has been restarted.")
)

// partitions keeps the transactions of the emulator that partition tokens belong to: the emulator takes a token back
// only on the session and the transaction it was made for, and that transaction lives as long as nothing else is begun
// on the session. The zero value is ready.
type partitions struct {
	mu   sync.Mutex
	kept map[string]*keptTx // by the id of the client's read-only transaction
}

type keptTx struct {
	tx    *backend.Tx
	since time.Time
}

func (ps *partitions) find(id string) *backend.Tx {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if k := ps.kept[id]; k != nil {
		return k.tx
	}
	return nil
}

// drop forgets a transaction that is lost.
func (ps *partitions) drop(id string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.kept, id)
}

// keep remembers tx. If another is kept under the id already, that one is returned, and tx is still the caller's.
func (ps *partitions) keep(id string, tx *backend.Tx) *backend.Tx {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if k := ps.kept[id]; k != nil {
		return k.tx
	}
	if ps.kept == nil {
		ps.kept = make(map[string]*keptTx)
	}
	ps.kept[id] = &keptTx{tx, time.Now()}
	return tx
}

// sweep gives back the sessions of transactions that are too old, or whose database is gone.
func (ps *partitions) sweep(pool *backend.Pool, gone string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id, k := range ps.kept {
		switch {
		case k.tx.Session.Database == gone:
			delete(ps.kept, id)
		case time.Since(k.since) > partitionLife:
			delete(ps.kept, id)
			pool.Give(k.tx.Session)
		}
	}
}

func (s *Server) partitionQuery(ctx context.Context, req *spannerpb.PartitionQueryRequest) (*spannerpb.PartitionResponse, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	kind, _, err := s.classify(ctx, sess, req.GetSql())
	if err != nil {
		return nil, err
	}
	if kind != queues.Pass {
		return nil, errPartitionedQueue
	}
	return s.partition(ctx, sess, req.GetTransaction(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.PartitionResponse, error) {
		r := shallow(req)
		r.Session, r.Transaction = session, sel
		r.Sql = s.queues.RewriteClock(req.GetSql())
		return s.pool.Client().PartitionQuery(ctx, r)
	})
}

func (s *Server) partitionRead(ctx context.Context, req *spannerpb.PartitionReadRequest) (*spannerpb.PartitionResponse, error) {
	sess, err := s.session(ctx, req.GetSession())
	if err != nil {
		return nil, err
	}
	if err := s.queues.AllowRead(ctx, sess.Database, sess.Role(), req.GetTable()); err != nil {
		return nil, err
	}
	return s.partition(ctx, sess, req.GetTransaction(), func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.PartitionResponse, error) {
		r := shallow(req)
		r.Session, r.Transaction = session, sel
		return s.pool.Client().PartitionRead(ctx, r)
	})
}

// partition makes partitions in a transaction that is kept for them.
func (s *Server) partition(ctx context.Context, sess ident.Session, sel *spannerpb.TransactionSelector, call func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.PartitionResponse, error)) (*spannerpb.PartitionResponse, error) {
	p, err := s.place(ctx, sess, sel, "")
	if err != nil {
		return nil, err
	}
	if p.txn != nil {
		p.undo(ctx)
		return nil, errNotReadOnly
	}
	if p.readOnly == nil {
		// The emulator refuses single-use transactions in its own words.
		var r *spannerpb.PartitionResponse
		err := p.run(ctx, false, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error {
			var err error
			r, err = call(ctx, session, sel)
			return err
		})
		return r, err
	}
	id, tx, err := s.keptFor(ctx, p)
	if err != nil {
		return nil, err
	}
	r, err := call(ctx, tx.Session.Name, tx.Selector())
	if err != nil {
		return nil, err
	}
	for _, part := range r.GetPartitions() {
		part.PartitionToken = ident.Partition{Transaction: id, Token: part.GetPartitionToken()}.Bytes()
	}
	r.Transaction = nil
	if p.beginsReadOnly {
		r.Transaction = &spannerpb.Transaction{Id: id.ID()}
		if p.showTime {
			r.Transaction.ReadTimestamp = id.Time
		}
	}
	return r, nil
}

// keptFor is the transaction of the emulator for a read-only transaction of a client: the one that is kept, or a new
// one that is kept from now on.
func (s *Server) keptFor(ctx context.Context, p *place) (ident.ReadOnly, *backend.Tx, error) {
	if id := p.continued; id != nil {
		if tx, err := s.keptTx(ctx, *id); tx != nil || err != nil {
			return *id, tx, err
		}
	}
	timed := shallow(p.readOnly)
	timed.ReturnReadTimestamp = true
	tx, err := s.pool.Begin(ctx, p.session.Database, &spannerpb.TransactionOptions{
		Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: timed},
	})
	if err != nil {
		return ident.ReadOnly{}, nil, err
	}
	id := ident.NewReadOnly(p.name(), tx.ReadTime)
	kept := s.partitions.keep(string(id.ID()), tx)
	if kept != tx {
		s.pool.Give(tx.Session)
	}
	return id, kept, nil
}

// keptTx is the transaction that is kept for the client's, or nil if there is none, any more.
func (s *Server) keptTx(ctx context.Context, client ident.ReadOnly) (*backend.Tx, error) {
	id := string(client.ID())
	tx := s.partitions.find(id)
	if tx == nil {
		return nil, nil
	}
	holds, err := s.pool.Holds(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !holds {
		s.partitions.drop(id)
		return nil, nil
	}
	return tx, nil
}

// placeOfPartition is place for a request that reads a partition; it also gives the emulator's own token.
func (s *Server) placeOfPartition(ctx context.Context, sess ident.Session, sel *spannerpb.TransactionSelector, tag string, token []byte) (*place, []byte, error) {
	p, err := s.place(ctx, sess, sel, tag)
	if err != nil || len(token) == 0 {
		return p, nil, err
	}
	part, ok := ident.ParsePartition(token)
	switch {
	case !ok:
		err = errPartitionToken
	case p.continued == nil || string(p.continued.ID()) != string(part.Transaction.ID()):
		err = errOtherTransaction
	default:
		if p.kept, err = s.keptTx(ctx, *p.continued); err == nil && p.kept == nil {
			err = errPartitionGone
		}
	}
	if err != nil {
		p.undo(ctx)
		return nil, nil, err
	}
	return p, part.Token, nil
}
