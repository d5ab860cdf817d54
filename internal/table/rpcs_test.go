package table

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// rpcs counts the calls of a client, and those that were answered ABORTED.
type rpcs struct {
	mu      sync.Mutex
	counts  map[string]int
	aborted int
}

func newRPCs() *rpcs { return &rpcs{counts: make(map[string]int)} }

func (r *rpcs) options() []option.ClientOption {
	return []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				r.called(method)
				err := invoke(ctx, method, req, reply, cc, opts...)
				r.answered(err)
				return err
			})),
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				r.called(method)
				s, err := stream(ctx, desc, cc, method, opts...)
				return &countedStream{s, r}, err
			})),
	}
}

type countedStream struct {
	grpc.ClientStream
	rpcs *rpcs
}

func (s *countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != io.EOF {
		s.rpcs.answered(err)
	}
	return err
}

func (r *rpcs) called(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[method[strings.LastIndexByte(method, '/')+1:]]++
}

func (r *rpcs) answered(err error) {
	if status.Code(err) != codes.Aborted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aborted++
}

// total is the number of calls but those that make sessions and ask for the time.
func (r *rpcs) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for method, calls := range r.counts {
		if !strings.Contains(method, "Session") && !strings.Contains(method, "ExecuteStreamingSql") {
			n += calls
		}
	}
	return n
}

func (r *rpcs) aborts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.aborted
}

func (r *rpcs) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counts)
	r.aborted = 0
}

func (r *rpcs) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(r.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", m, r.counts[m]))
	}
	return strings.Join(parts, ", ")
}

func (r *rpcs) calls(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[method]
}
