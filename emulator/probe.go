package emulator

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front"
)

// dial makes a connection for plain calls: by address, without credentials, whatever the environment says.
func dial(addr string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("emulator: connect to %s: %w", addr, err)
	}
	return conn, nil
}

// probe makes one call that any Spanner answers and returns the version of the front that answered it, empty for a
// bare emulator.
func probe(ctx context.Context, conn *grpc.ClientConn) (version string, err error) {
	var header metadata.MD
	_, err = instancepb.NewInstanceAdminClient(conn).ListInstanceConfigs(ctx,
		&instancepb.ListInstanceConfigsRequest{Parent: "projects/spanqueue-probe"}, grpc.Header(&header))
	if err != nil {
		return "", err
	}
	if v := header.Get(front.VersionHeader); len(v) > 0 {
		return v[0], nil
	}
	return "", nil
}

// probeAddr probes what is said to run at addr, for at most five seconds.
func probeAddr(ctx context.Context, addr string) (version string, err error) {
	conn, err := dial(addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return probe(ctx, conn)
}

// awaitAnswer probes until an answer comes. It ends early when gone closes or ctx ends.
func awaitAnswer(ctx context.Context, addr string, gone <-chan struct{}) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		_, err := probe(ctx, conn)
		if err == nil || ctx.Err() == nil && status.Code(err) != codes.Unavailable {
			return err
		}
		conn.ResetConnectBackoff()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-gone:
			return err
		case <-time.After(wait):
		}
	}
}
