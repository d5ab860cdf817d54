package passthrough

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var bothWays = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// Proxy forwards RPCs to a connection.
type Proxy struct {
	conn    grpc.ClientConnInterface
	senders sync.WaitGroup
}

// New makes a Proxy before conn.
func New(conn grpc.ClientConnInterface) *Proxy { return &Proxy{conn: conn} }

// Wait blocks until nothing of the RPCs that were served is left. Call it when the server has stopped.
func (p *Proxy) Wait() { p.senders.Wait() }

// Serve is a grpc.StreamHandler.
func (p *Proxy) Serve(_ any, in grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(in)
	if !ok {
		return status.Error(codes.Internal, "the RPC has no method")
	}
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	md, _ := metadata.FromIncomingContext(ctx)
	out, err := p.conn.NewStream(metadata.NewOutgoingContext(ctx, outgoing(md)), bothWays, method, grpc.ForceCodecV2(Codec()))
	if err != nil {
		return err
	}
	// A client may keep its side open after the answer. What reads from it wakes only when this handler has returned,
	// so it is not joined here but in Wait.
	p.senders.Go(func() {
		if err := sendRequests(in, out); err != nil {
			cancel()
		}
	})
	return sendAnswers(in, out)
}

// sendRequests moves the client's messages until it has closed its side.
func sendRequests(in grpc.ServerStream, out grpc.ClientStream) error {
	for {
		var f Frame
		if err := in.RecvMsg(&f); err == io.EOF {
			return out.CloseSend()
		} else if err != nil {
			return err
		}
		err := out.SendMsg(&f)
		f.free()
		if err != nil {
			return nil // what went wrong is the answer's to say
		}
	}
}

// sendAnswers moves the emulator's messages and returns its status.
func sendAnswers(in grpc.ServerStream, out grpc.ClientStream) error {
	defer func() { in.SetTrailer(out.Trailer()) }()
	headerSent := false
	for {
		var f Frame
		if err := out.RecvMsg(&f); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if !headerSent {
			headerSent = true
			if md, err := out.Header(); err == nil {
				if err := in.SetHeader(reply(md)); err != nil {
					return err
				}
			}
		}
		err := in.SendMsg(&f)
		f.free()
		if err != nil {
			return err
		}
	}
}

// outgoing leaves out what belongs to the hop.
func outgoing(md metadata.MD) metadata.MD {
	return without(md, ":authority", "user-agent", "content-type", "te")
}

func reply(md metadata.MD) metadata.MD {
	return without(md, "content-type", "trailer", "date", "server")
}

func without(md metadata.MD, names ...string) metadata.MD {
	md = md.Copy()
	for _, n := range names {
		md.Delete(n)
	}
	return md
}
