package passthrough

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each message at once, with what it knows of the caller in header and trailer. "fail" makes it fail.
func echo(_ any, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	if err := stream.SetHeader(metadata.Pairs("heard", md.Get("said")[0])); err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs("after", "all"))
	for {
		var m wrapperspb.StringValue
		if err := stream.RecvMsg(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if m.Value == "fail" {
			st, err := status.New(codes.NotFound, "nobody").WithDetails(&errdetails.ResourceInfo{ResourceName: "r"})
			if err != nil {
				return err
			}
			return st.Err()
		}
		if err := stream.SendMsg(&m); err != nil {
			return err
		}
	}
}

func dial(t *testing.T, lis *bufconn.Listener) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// chain is a client of a proxy before an echo.
func chain(t *testing.T) *grpc.ClientConn {
	back, front := bufconn.Listen(1<<16), bufconn.Listen(1<<16)
	server := grpc.NewServer(grpc.UnknownServiceHandler(echo))
	proxy := New(dial(t, back))
	proxied := grpc.NewServer(grpc.UnknownServiceHandler(proxy.Serve), grpc.ForceServerCodecV2(Codec()))
	served := make(chan error, 2)
	go func() { served <- server.Serve(back) }()
	go func() { served <- proxied.Serve(front) }()
	t.Cleanup(func() {
		proxied.Stop()
		proxy.Wait()
		server.Stop()
		require.NoError(t, <-served)
		require.NoError(t, <-served)
	})
	return dial(t, front)
}

func open(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), "said", "hello"))
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, bothWays, "/any.Service/Echo")
	require.NoError(t, err)
	return stream
}

func TestBothWays(t *testing.T) {
	stream := open(t, chain(t))
	for _, text := range []string{"a", "", "c"} { // each is answered before the next is sent
		require.NoError(t, stream.SendMsg(wrapperspb.String(text)))
		var got wrapperspb.StringValue
		require.NoError(t, stream.RecvMsg(&got))
		require.Equal(t, text, got.Value)
	}
	header, err := stream.Header()
	require.NoError(t, err)
	require.Equal(t, []string{"hello"}, header.Get("heard"))
	require.NoError(t, stream.CloseSend())
	require.ErrorIs(t, stream.RecvMsg(new(wrapperspb.StringValue)), io.EOF)
	require.Equal(t, []string{"all"}, stream.Trailer().Get("after"))
}

// The backend may end while the client has more to say.
func TestErrorWithDetails(t *testing.T) {
	stream := open(t, chain(t))
	require.NoError(t, stream.SendMsg(wrapperspb.String("fail")))
	err := stream.RecvMsg(new(wrapperspb.StringValue))
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Len(t, status.Convert(err).Details(), 1)
	require.Equal(t, []string{"all"}, stream.Trailer().Get("after"))
}

func TestNoBackend(t *testing.T) {
	lis := bufconn.Listen(1)
	require.NoError(t, lis.Close())
	front := bufconn.Listen(1 << 16)
	proxy := New(dial(t, lis))
	proxied := grpc.NewServer(grpc.UnknownServiceHandler(proxy.Serve), grpc.ForceServerCodecV2(Codec()))
	served := make(chan error, 1)
	go func() { served <- proxied.Serve(front) }()
	err := dial(t, front).Invoke(t.Context(), "/any.Service/Echo", wrapperspb.String("a"), new(wrapperspb.StringValue))
	require.Equal(t, codes.Unavailable, status.Code(err))
	proxied.Stop()
	proxy.Wait()
	require.NoError(t, <-served)
}
