package front

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/spanqueue/spanqueue/emulator/front/internal/passthrough"
)

// passThrough serves the RPCs that the front does not know. They go through the faults too; only for that is the
// request read.
func (s *Server) passThrough(srv any, stream grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(stream)
	if !ok || s.faults.Empty() {
		return s.proxy.Serve(srv, stream)
	}
	first := new(passthrough.Frame)
	if err := stream.RecvMsg(first); err != nil {
		return err
	}
	in := &peeked{ServerStream: stream, first: first}
	return s.throughFaults(in, bareMethod(method), requestOf(method, first.Bytes()), func(out grpc.ServerStream) error {
		return s.proxy.Serve(srv, out)
	})
}

// peeked is a stream whose first message has been read already, and is read once more.
type peeked struct {
	grpc.ServerStream
	first *passthrough.Frame
}

func (p *peeked) RecvMsg(m any) error {
	f, ok := m.(*passthrough.Frame)
	if !ok || p.first == nil {
		return p.ServerStream.RecvMsg(m)
	}
	*f, p.first = *p.first, nil
	return nil
}

// requestOf decodes the request of a method whose types this program knows; it is nil otherwise.
func requestOf(method string, wire []byte) proto.Message {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok {
		return nil
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	sd, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	md := sd.Methods().ByName(protoreflect.Name(name))
	if md == nil {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(md.Input().FullName())
	if err != nil {
		return nil
	}
	req := t.New().Interface()
	if proto.Unmarshal(wire, req) != nil {
		return nil
	}
	return req
}
