package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/expiry"
	"github.com/spanqueue/spanqueue/emulator/front/internal/passthrough"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

const (
	// maxMessage is the most that a request or an answer may have: above the service's limits, so that the emulator
	// decides.
	maxMessage = 128 << 20
	// closeGrace is how long Close waits for RPCs that the emulator does not answer, before it hangs up on it.
	closeGrace = 3 * time.Second
	// sweepInterval is how often what is old is dropped, and stuckInterval how often a rollback that failed is tried.
	sweepInterval = time.Minute
	stuckInterval = time.Second
	// idleSession is how long a session of the emulator is kept without use.
	idleSession = 10 * time.Minute
)

// reconnecting finds an emulator that was away soon after it has come back: gRPC's own default waits for up to two
// minutes.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// keepalivePolicy suits Google's clients, which ping every two minutes: gRPC's own default would close their idle
// connections after the third ping.
var keepalivePolicy = keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}

// Server is a front before one emulator. Make it with New.
type Server struct {
	opts   Options
	faults fault.Set
	counts counter
	waits  waits

	// What clients are told of, and what it stands for in the emulator.
	known      sessions
	txns       *txn.Manager
	partitions partitions
	queues     *queues.Queues
	emulator   *store // as the queues see it
	dialects   dialects
	declared   declared
	expiry     *expiry.Sweeper

	conn      *grpc.ClientConn // to the emulator
	pool      *backend.Pool
	databases databasepb.DatabaseAdminClient
	proxy     *passthrough.Proxy

	grpc    *grpc.Server
	closing sync.Once
	closed  chan struct{}
	sweeper sync.WaitGroup
}

// New makes a front before the emulator at backendAddr ("host:port"), which it does not call before the first RPC. The
// front serves nothing before Serve. Close it, also when Serve was never called.
func New(ctx context.Context, backendAddr string, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var pool *backend.Pool // made below, before anything is sent
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		pool.Connecting()
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	conn, err := grpc.NewClient("passthrough:///"+backendAddr,
		grpc.WithContextDialer(dial),
		grpc.WithIdleTimeout(0),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(reconnecting),
	)
	if err != nil {
		return nil, fmt.Errorf("front: emulator %q: %w", backendAddr, err)
	}
	pool = backend.NewPool(spannerpb.NewSpannerClient(conn), opts.Logger)
	s := &Server{
		opts:      opts,
		waits:     newWaits(opts.Latency),
		txns:      txn.NewManager(pool, opts.IdleBound, opts.ClosedBound),
		conn:      conn,
		pool:      pool,
		databases: databasepb.NewDatabaseAdminClient(conn),
		proxy:     passthrough.New(conn),
		closed:    make(chan struct{}),
	}
	s.emulator = &store{
		txns: s.txns, pool: pool, native: newNative(), instances: instancepb.NewInstanceAdminClient(conn), databases: s.databases,
	}
	s.queues, err = queues.New(s.emulator, queues.Options{
		LeaseLength: opts.LeaseLength,
		Redelivery:  opts.Redelivery,
		ClockOffset: opts.ClockOffset,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("front: %w", err), conn.Close())
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(plainText{s.txns}),
		grpc.ForceServerCodecV2(passthrough.Codec()),
		grpc.StreamInterceptor(s.around),
		grpc.UnknownServiceHandler(s.passThrough),
		grpc.KeepaliveEnforcementPolicy(keepalivePolicy),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.WaitForHandlers(true),
	)
	s.grpc.RegisterService(&spannerService, s)
	s.grpc.RegisterService(&databaseAdminService, s)
	s.grpc.RegisterService(&instanceAdminService, s)
	s.grpc.RegisterService(&operationsService, s)
	s.sweeper.Go(s.sweep)
	s.expiry = expiry.New(expiring{s}, expiry.Options{Interval: opts.RowDeletionInterval, ClockOffset: opts.ClockOffset, Logger: opts.Logger})
	return s, nil
}

// Serve answers the clients that come to lis. It blocks until Close, and then returns nil, or until lis fails, and
// returns its error. It closes lis.
func (s *Server) Serve(lis net.Listener) error {
	err := s.grpc.Serve(lis)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Close ends Serve, all streams and everything the front has started, and returns when that is done. Open transactions
// are rolled back. Calling it again waits too and does nothing more.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.closed)
		s.faults.Clear()
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		hangUp := sync.OnceFunc(func() { err = s.conn.Close() })
		late := context.AfterFunc(ctx, hangUp)
		defer late()
		s.queues.Close()
		s.expiry.Close()
		s.grpc.Stop()
		s.txns.Close(ctx)
		s.pool.Trim(ctx, 0)
		s.sweeper.Wait()
		s.proxy.Wait()
		hangUp()
	})
	return err
}

// sweep drops what is old, until Close.
func (s *Server) sweep() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick, stuck := time.NewTicker(sweepInterval), time.NewTicker(stuckInterval)
	defer tick.Stop()
	defer stuck.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-stuck.C:
			s.pool.RollBackStuck(ctx)
			continue
		case <-tick.C:
		}
		s.txns.Sweep(ctx)
		s.partitions.sweep(s.pool, "")
		s.pool.Trim(ctx, idleSession)
	}
}

// Faults are the rules by which the front misbehaves on purpose. There are none at first.
func (s *Server) Faults() *fault.Set { return &s.faults }
