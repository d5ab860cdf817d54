package front_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/spanqueue/spanqueue/emulator/front"
)

// idleHour keeps a connection without RPCs for an hour of fake time, pinging as Google's clients may, and tells
// whether it lived.
func idleHour(t *testing.T, lis *bufconn.Listener, every time.Duration) (lived bool) {
	conn, err := grpc.NewClient("passthrough:///front",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: every, Timeout: time.Second, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0),
	)
	require.NoError(t, err)
	defer conn.Close()
	conn.Connect()
	for conn.GetState() != connectivity.Ready {
		require.True(t, conn.WaitForStateChange(t.Context(), conn.GetState()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	return !conn.WaitForStateChange(ctx, connectivity.Ready)
}

// Google's Go client pings idle connections every two minutes; gRPC's own default policy ends them at the third ping.
// Time is fake.
func TestIdleConnectionsThatPingLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, every := range []time.Duration{10 * time.Second, 2 * time.Minute} {
			lis := bufconn.Listen(1 << 16)
			s, err := front.New(t.Context(), "nobody.invalid:1", front.Options{})
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- s.Serve(lis) }()
			require.True(t, idleHour(t, lis, every), "a connection that pings every %v was closed", every)
			require.NoError(t, s.Close())
			require.NoError(t, <-served)

			// The same test fails with the default.
			lis = bufconn.Listen(1 << 16)
			plain := grpc.NewServer()
			go func() { served <- plain.Serve(lis) }()
			require.False(t, idleHour(t, lis, every), "the default policy lets it live: this shows nothing")
			plain.Stop()
			require.NoError(t, <-served)
		}
	})
}
