package front

import (
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var versionHeader = metadata.Pairs(VersionHeader, Version)

// around is what every RPC goes through first, whether the front knows its method or not: it is counted, its answer
// carries the front's version, and a panic costs this RPC alone.
func (s *Server) around(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Error("front: panic in an RPC", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, fmt.Sprintf("front: panic: %v", p))
		}
	}()
	s.counts.add(bareMethod(info.FullMethod))
	if err := stream.SetHeader(versionHeader); err != nil {
		return err
	}
	return handler(srv, stream)
}

func bareMethod(full string) string { return full[strings.LastIndexByte(full, '/')+1:] }

// maxCounted bounds the names that a client can make up.
const maxCounted = 1000

type counter struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counter) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int64)
	}
	if _, known := c.n[method]; known || len(c.n) < maxCounted {
		c.n[method]++
	}
}

func (c *counter) snapshot() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}
