package front

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
)

// throughFaults takes an RPC through the rules. handle answers it on the stream that it is given.
func (s *Server) throughFaults(stream grpc.ServerStream, method string, req proto.Message, handle func(grpc.ServerStream) error) error {
	x := &exchange{server: s, stream: stream, method: method, req: req, handle: handle}
	return s.faults.Run(stream.Context(), s.call(method, req), x)
}

// exchange is an RPC as the actions see it. It implements fault.Exchange.
type exchange struct {
	server *Server
	stream grpc.ServerStream
	method string
	req    proto.Message // may be nil
	handle func(grpc.ServerStream) error
}

func (x *exchange) Forward(ctx context.Context, reply func() error) error {
	out := &gated{ServerStream: x.stream, ctx: ctx, x: x, reply: reply}
	err := x.handle(out)
	if !out.passed && ctx.Err() == nil {
		out.pass() // the answer is an error, or an empty stream
	}
	if out.refused != nil {
		return out.refused
	}
	return err
}

func (x *exchange) Rollback(ctx context.Context) {
	if t := x.server.named(x.req); t != nil {
		t.Abort(context.WithoutCancel(ctx), "Transaction was aborted.")
	}
}

func (x *exchange) Forget() {
	if id := transactionID(x.req); id != nil {
		if rw, _ := ident.Transaction(id); rw != nil {
			x.server.txns.Forget(*rw)
		}
	}
}

func (x *exchange) Cut() {
	if c := connOf(x.stream.Context()); c != nil {
		_ = c.Close() // it is closed whatever this says
	}
}

// gated is a stream whose first message waits for reply, and whose rows go through the rules about rows.
type gated struct {
	grpc.ServerStream
	ctx     context.Context
	x       *exchange
	reply   func() error
	passed  bool
	refused error // by reply or by a rule about rows: it is the RPC's error
}

func (g *gated) Context() context.Context { return g.ctx }

func (g *gated) SendMsg(m any) error {
	if err := g.pass(); err != nil {
		return err
	}
	row, ok := m.(*spannerpb.PartialResultSet)
	if !ok || len(row.GetValues()) == 0 || g.x.server.faults.Empty() {
		return g.ServerStream.SendMsg(m)
	}
	c := g.x.server.call(g.x.method, g.x.req)
	c.Row = row
	sent := &sentRow{exchange: g.x, row: row}
	if err := g.x.server.faults.Run(g.ctx, c, sent); err != nil {
		if !sent.failed {
			g.refused = err
		}
		return err
	}
	return nil
}

func (g *gated) pass() error {
	if g.passed {
		return g.refused
	}
	g.passed = true
	if g.reply != nil {
		g.refused = g.reply()
	}
	return g.refused
}

// sentRow is a row as the actions see it.
type sentRow struct {
	*exchange
	row    *spannerpb.PartialResultSet
	failed bool // it could not be sent, through no fault of a rule
}

func (r *sentRow) Forward(_ context.Context, reply func() error) error {
	if err := r.stream.SendMsg(r.row); err != nil {
		r.failed = true
		return err
	}
	if reply != nil {
		return reply()
	}
	return nil
}
