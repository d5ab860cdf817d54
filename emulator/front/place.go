package front

import (
	"context"
	"encoding/binary"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

var errNoMode = status.Error(codes.InvalidArgument, "No value provided for required field: TransactionOptions.mode")

// place is where a request runs that names a session and a transaction: in a read-write transaction, or in one of the
// emulator's for this request alone.
type place struct {
	server  *Server
	session ident.Session

	// In a transaction of ours. begun: this request begins it, and its answer must carry the id.
	txn   *txn.Txn
	begun bool

	// For this request alone: the selector to send.
	single *spannerpb.TransactionSelector
	// In a read-only transaction of the client's: where it reads, the id if it is not begun here, and, if it is,
	// whether the client wants to see its timestamp.
	readOnly       *spannerpb.TransactionOptions_ReadOnly
	continued      *ident.ReadOnly
	beginsReadOnly bool
	showTime       bool
	// In the transaction that partitions were made in.
	kept *backend.Tx
}

// place finds out where a request runs. A transaction that it begins must be undone if its id does not reach the
// client.
func (s *Server) place(ctx context.Context, sess ident.Session, sel *spannerpb.TransactionSelector, tag string) (*place, error) {
	p := &place{server: s, session: sess}
	var err error
	switch sel := sel.GetSelector().(type) {
	case *spannerpb.TransactionSelector_Begin:
		err = p.begin(sel.Begin)
	case *spannerpb.TransactionSelector_Id:
		err = p.continues(sel.Id)
	default:
		// Single use, or nothing, which means the same. The emulator says what it does not like.
		if sel != nil {
			p.single = &spannerpb.TransactionSelector{Selector: sel}
		}
	}
	if err != nil {
		return nil, err
	}
	if p.txn != nil {
		p.txn.Follow(clientOf(ctx))
		p.txn.NoteTag(tag)
	}
	return p, nil
}

// name is that of the client's session.
func (p *place) name() string { return p.session.Props.GetName() }

func (p *place) begin(o *spannerpb.TransactionOptions) error {
	switch mode := o.GetMode().(type) {
	case nil:
		return errNoMode
	case *spannerpb.TransactionOptions_ReadOnly_:
		return p.beginReadOnly(mode.ReadOnly)
	default:
		p.txn, p.begun = p.server.txns.Begin(p.name(), forBackend(o)), true
		return nil
	}
}

// beginReadOnly makes a read-only transaction out of a single-use read: all that it needs is the timestamp.
func (p *place) beginReadOnly(ro *spannerpb.TransactionOptions_ReadOnly) error {
	switch ro.GetTimestampBound().(type) {
	case *spannerpb.TransactionOptions_ReadOnly_MaxStaleness:
		return errSingleUseBound("max_staleness")
	case *spannerpb.TransactionOptions_ReadOnly_MinReadTimestamp:
		return errSingleUseBound("min_read_timestamp")
	}
	p.readOnly = shallow(ro)
	p.readOnly.ReturnReadTimestamp = true
	p.single = singleUse(p.readOnly)
	p.beginsReadOnly, p.showTime = true, ro.GetReturnReadTimestamp()
	return nil
}

func errSingleUseBound(name string) error {
	return status.Errorf(codes.InvalidArgument, "Timestamp bound: %s for read can be only be used for a single use transaction.", name)
}

func singleUse(ro *spannerpb.TransactionOptions_ReadOnly) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{
		SingleUse: &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: ro}},
	}}
}

func (p *place) continues(id []byte) error {
	rw, ro := ident.Transaction(id)
	switch {
	case ro != nil && ro.Of(p.name()):
		p.continued = ro
		p.readOnly = &spannerpb.TransactionOptions_ReadOnly{
			TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ReadTimestamp{ReadTimestamp: ro.Time},
		}
		p.single = singleUse(p.readOnly)
		return nil
	case rw != nil:
		t, err := p.server.txns.Find(p.name(), *rw)
		p.txn = t
		return err
	}
	return txn.ErrNotFound(id)
}

// run runs f with the session and the transaction selector of the emulator. last says that the request is the
// transaction's last statement.
func (p *place) run(ctx context.Context, last bool, f func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error) error {
	if p.txn != nil {
		err := p.txn.Run(ctx, last, func(ctx context.Context, tx *backend.Tx) error {
			return f(ctx, tx.Session.Name, tx.Selector())
		})
		if err == nil && p.txn.Partitioned {
			p.server.queues.Committed(p.session.Database, p.txn.Touched())
		}
		return err
	}
	if p.kept != nil {
		return f(ctx, p.kept.Session.Name, p.kept.Selector())
	}
	err := p.server.pool.With(ctx, p.session.Database, func(session string) error { return f(ctx, session, p.single) })
	return p.asReadOnly(err)
}

// asReadOnly gives the emulator's words for DML in a read-only transaction, of which it has seen only a single-use one.
func (p *place) asReadOnly(err error) error {
	if p.readOnly != nil && err != nil && status.Convert(err).Message() == "DML statements may not be performed in single-use transactions, to avoid replay." {
		return status.Error(codes.InvalidArgument, "DML statements can only be performed in a read-write or partitioned-dml transaction. Current transaction type is ReadOnly.")
	}
	return err
}

// transaction is what the answer's metadata says about the transaction, given what the emulator said.
func (p *place) transaction(emulators *spannerpb.Transaction) *spannerpb.Transaction {
	switch {
	case p.begun:
		return &spannerpb.Transaction{Id: p.txn.ID()}
	case p.beginsReadOnly:
		t := &spannerpb.Transaction{Id: ident.NewReadOnly(p.name(), emulators.GetReadTimestamp()).ID()}
		if p.showTime {
			t.ReadTimestamp = emulators.GetReadTimestamp()
		}
		return t
	case p.txn != nil || p.continued != nil:
		return nil
	}
	return emulators
}

// token is a new pre-commit token, for read-write transactions on multiplexed sessions.
func (p *place) token() *spannerpb.MultiplexedSessionPrecommitToken {
	if p.txn == nil || p.txn.Partitioned || !p.session.Props.GetMultiplexed() {
		return nil
	}
	return precommitToken(p.txn)
}

func precommitToken(t *txn.Txn) *spannerpb.MultiplexedSessionPrecommitToken {
	n := t.NextToken()
	return &spannerpb.MultiplexedSessionPrecommitToken{
		PrecommitToken: binary.BigEndian.AppendUint32([]byte("spanqueue-"), uint32(n)),
		SeqNum:         n,
	}
}

// touch remembers which queues the request may change, until its transaction commits. It comes before the statement,
// whose answer may be lost although it has taken effect.
func (p *place) touch(touched []string) {
	if p.txn != nil {
		p.txn.Touch(touched)
	}
}

// undo ends a transaction that this request began, and whose id the client does not know.
func (p *place) undo(ctx context.Context) {
	if p.begun {
		p.txn.Abort(context.WithoutCancel(ctx), "The answer that carries the transaction's id was not delivered.")
	}
}

// undelivered ends the transaction that an answer would have told the client of.
func (s *Server) undelivered(ctx context.Context, answer any) {
	var id []byte
	switch a := answer.(type) {
	case *spannerpb.ResultSet:
		id = a.GetMetadata().GetTransaction().GetId()
	case *spannerpb.ExecuteBatchDmlResponse:
		if sets := a.GetResultSets(); len(sets) > 0 {
			id = sets[0].GetMetadata().GetTransaction().GetId()
		}
	case *spannerpb.Transaction:
		id = a.GetId()
	}
	if rw, _ := ident.Transaction(id); rw != nil {
		s.txns.Discard(context.WithoutCancel(ctx), *rw)
	}
}

// forBackend are the options of a read-write transaction without what only the front can know.
func forBackend(o *spannerpb.TransactionOptions) *spannerpb.TransactionOptions {
	rw := o.GetReadWrite()
	if rw == nil || len(rw.GetMultiplexedSessionPreviousTransactionId()) == 0 {
		return o
	}
	rw = shallow(rw)
	rw.MultiplexedSessionPreviousTransactionId = nil
	o = shallow(o)
	o.Mode = &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: rw}
	return o
}
