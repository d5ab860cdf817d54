package front

import (
	"context"
	"io"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
)

// resultStream is an answer of the emulator in pieces.
type resultStream = grpc.ServerStreamingClient[spannerpb.PartialResultSet]

// resultSet runs a request with one answer and puts the client's transaction into it.
func (p *place) resultSet(ctx context.Context, last bool, call func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (*spannerpb.ResultSet, error)) (*spannerpb.ResultSet, error) {
	var r *spannerpb.ResultSet
	err := p.run(ctx, last, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error {
		var err error
		r, err = call(ctx, session, sel)
		return err
	})
	if err != nil {
		p.undo(ctx)
		return nil, err
	}
	p.mark(&r.Metadata)
	r.PrecommitToken = p.token()
	return r, nil
}

// mark puts the client's transaction into the metadata of an answer.
func (p *place) mark(m **spannerpb.ResultSetMetadata) {
	t := p.transaction((*m).GetTransaction())
	if *m == nil {
		if t == nil {
			return
		}
		*m = new(spannerpb.ResultSetMetadata)
	}
	(*m).Transaction = t
}

// stream runs a request whose answer comes in pieces.
func (p *place) stream(out grpc.ServerStream, last bool, call func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) (resultStream, error)) error {
	sent := false
	var undelivered error
	send := func(m *spannerpb.PartialResultSet) error {
		if !sent {
			p.mark(&m.Metadata)
		}
		m.PrecommitToken = p.token()
		undelivered = out.SendMsg(m)
		sent = sent || undelivered == nil
		return undelivered
	}
	read := func(ctx context.Context, take func(*spannerpb.PartialResultSet) error) error {
		return p.run(ctx, last, func(ctx context.Context, session string, sel *spannerpb.TransactionSelector) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel() // ends the emulator's stream if nobody wants the rest
			in, err := call(ctx, session, sel)
			if err != nil {
				return err
			}
			for {
				m, err := in.Recv()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				if take(m) != nil {
					return nil // the statement was executed all the same
				}
			}
		})
	}
	var err error
	if p.txn == nil {
		err = read(out.Context(), send)
	} else {
		err = readAhead(out.Context(), read, send)
	}
	if err == nil {
		err = undelivered
	}
	if err != nil && !sent {
		p.undo(out.Context())
	}
	return err
}
