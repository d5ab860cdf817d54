package front

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The RPCs that the front answers itself are all described as streams, so that one interceptor sees them and the
// unknown ones alike, and so that faults have one place to stand: before what the handler sends.

// message is a pointer to a generated type.
type message[T any] interface {
	*T
	proto.Message
}

// unary describes a method with one answer.
func unary[Req any, PReq message[Req], Resp proto.Message](name string, h func(*Server, context.Context, PReq) (Resp, error)) grpc.StreamDesc {
	return serverStream(name, func(s *Server, req PReq, out grpc.ServerStream) error {
		resp, err := h(s, out.Context(), req)
		if err != nil {
			return err
		}
		err = out.Context().Err()
		if err == nil {
			err = out.SendMsg(resp)
		}
		if err != nil {
			s.undelivered(out.Context(), resp)
		}
		return err
	})
}

// serverStream describes a method with many answers.
func serverStream[Req any, PReq message[Req]](name string, h func(*Server, PReq, grpc.ServerStream) error) grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName:    name,
		ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			s := srv.(*Server)
			req := PReq(new(Req))
			if err := stream.RecvMsg(req); err != nil {
				return err
			}
			if err := s.waits.wait(stream.Context(), name); err != nil {
				return err
			}
			return s.throughFaults(stream, name, req, func(out grpc.ServerStream) error { return h(s, req, out) })
		},
	}
}

// shallow copies a message but not what it points to: what is changed in the copy's own fields stays there.
func shallow[M proto.Message](m M) M {
	src := m.ProtoReflect()
	dst := src.New()
	src.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		dst.Set(f, v)
		return true
	})
	dst.SetUnknown(src.GetUnknown())
	return dst.Interface().(M)
}
