package passthrough

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec falls back on
	"google.golang.org/grpc/mem"
)

// Frame is one message as it was on the wire.
type Frame struct{ data mem.BufferSlice }

// Bytes is a copy of the message's wire form.
func (f *Frame) Bytes() []byte { return f.data.Materialize() }

// free gives the buffers back. The frame is empty then.
func (f *Frame) free() {
	f.data.Free()
	f.data = nil
}

// Codec is the ordinary codec of gRPC, but for Frames, which it leaves as they are.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*Frame); ok {
		f.data.Ref() // gRPC frees what it is given; the frame's own reference is freed by free
		return f.data, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*Frame); ok {
		data.Ref()
		f.data = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
