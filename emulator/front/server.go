package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/emulator/front/internal/passthrough"
)

// maxMessage is the most that a request or an answer may have: above the service's limits, so that the emulator
// decides.
const maxMessage = 128 << 20

// Server is a front before one emulator. Make it with New.
type Server struct {
	opts   Options
	conn   *grpc.ClientConn
	grpc   *grpc.Server
	proxy  *passthrough.Proxy
	faults fault.Set
	counts counter

	closing sync.Once
}

// New makes a front before the emulator at backend ("host:port"), which must already answer; ctx bounds only the
// making. The front serves nothing before Serve. Close it, also when Serve was never called.
func New(ctx context.Context, backend string, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+backend,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("front: backend %q: %w", backend, err)
	}
	s := &Server{opts: opts, conn: conn, proxy: passthrough.New(conn)}
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(passthrough.Codec()),
		grpc.UnknownServiceHandler(s.proxy.Serve),
		grpc.KeepaliveEnforcementPolicy(keepalivePolicy),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.StreamInterceptor(s.around),
		grpc.WaitForHandlers(true),
	)
	return s, nil
}

// keepalivePolicy suits Google's clients, which ping every two minutes: gRPC's own default would close their idle
// connections after the third ping.
var keepalivePolicy = keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}

// Serve answers the clients that come to lis. It blocks until Close, and then returns nil, or until lis fails, and
// returns its error. It closes lis.
func (s *Server) Serve(lis net.Listener) error {
	err := s.grpc.Serve(lis)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Close ends Serve, all streams and everything the front has started, and returns when that is done. Transactions
// that are open are lost. Calling it again waits too and does nothing more.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.faults.Clear()
		s.grpc.Stop()
		s.proxy.Wait()
		err = s.conn.Close()
	})
	return err
}

// Faults are the rules by which the front misbehaves on purpose. There are none at first.
func (s *Server) Faults() *fault.Set { return &s.faults }

// RPCs counts the RPCs that clients have begun, by bare method name ("Commit").
func (s *Server) RPCs() map[string]int64 { return s.counts.snapshot() }
