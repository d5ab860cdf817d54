package emulator

import (
	"context"
	"net"
	"testing"

	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/spanqueue/spanqueue/emulator/front"
)

func TestClientsTalkToTheFront(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NotNil(t, e.Front())
	require.NotEqual(t, e.Addr(), e.BackendAddr())

	version, err := probeAddr(t.Context(), e.Addr())
	require.NoError(t, err)
	require.Equal(t, front.Version, version)
	version, err = probeAddr(t.Context(), e.BackendAddr())
	require.NoError(t, err)
	require.Empty(t, version, "the bare emulator is behind it")

	require.NoError(t, e.CreateDatabase(t.Context(), database, accountTable))
	require.NoError(t, insertAccount(t.Context(), client(t, e, database), 1))
	require.Positive(t, e.Front().RPCs()["Commit"])
}

func TestNoFront(t *testing.T) {
	t.Parallel()
	e := start(t, Options{NoFront: true})
	require.Nil(t, e.Front())
	require.Equal(t, e.BackendAddr(), e.Addr())
	version, err := probeAddr(t.Context(), e.Addr())
	require.NoError(t, err)
	require.Empty(t, version)
}

func TestFrontListensWhereItIsTold(t *testing.T) {
	t.Parallel()
	e := start(t, Options{Addr: "localhost:0"})
	host, port, err := net.SplitHostPort(e.Addr())
	require.NoError(t, err)
	require.Equal(t, "localhost", host, "as it was given")
	require.NotEqual(t, "0", port, "the real one")

	_, err = Start(t.Context(), Options{IgnoreEnvironment: true, Addr: e.Addr()})
	require.ErrorContains(t, err, "the address "+e.Addr()+" is in use by another program")
}

func TestPortOfABareEmulatorIsInUse(t *testing.T) {
	t.Parallel()
	e := start(t, Options{NoFront: true}) // it lets others share its port
	_, err := Start(t.Context(), Options{IgnoreEnvironment: true, Addr: e.Addr()})
	require.ErrorContains(t, err, "is in use by another program")
}

func TestListenNamesAnAddressThatClientsCanUse(t *testing.T) {
	t.Parallel()
	for given, host := range map[string]string{
		"127.0.0.1:0": "127.0.0.1",
		"localhost:0": "localhost",
		":0":          "localhost",
		"0.0.0.0:0":   "localhost",
	} {
		addr, listeners, err := listen(t.Context(), given)
		require.NoError(t, err, given)
		defer closeAll(listeners)
		gotHost, port, err := net.SplitHostPort(addr)
		require.NoError(t, err, given)
		require.Equal(t, host, gotHost, given)
		for _, lis := range listeners {
			_, bound, _ := net.SplitHostPort(lis.Addr().String())
			require.Equal(t, port, bound, given)
		}
	}
}

// otherFront answers probes as a front of another version does.
type otherFront struct {
	instancepb.UnimplementedInstanceAdminServer
	version string
}

func (f otherFront) ListInstanceConfigs(ctx context.Context, _ *instancepb.ListInstanceConfigsRequest) (*instancepb.ListInstanceConfigsResponse, error) {
	return &instancepb.ListInstanceConfigsResponse{}, grpc.SetHeader(ctx, metadata.Pairs(front.VersionHeader, f.version))
}

func serveOtherFront(t *testing.T, version string) (addr string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	instancepb.RegisterInstanceAdminServer(s, otherFront{version: version})
	go func() { _ = s.Serve(lis) }()
	t.Cleanup(s.Stop)
	return lis.Addr().String()
}

// withHost opens what SPANNER_EMULATOR_HOST would name, without setting it: the variable is the process's.
func withHost(t *testing.T, host string, o Options) (*Emulator, error) {
	t.Helper()
	m := thisMachine(Options{IgnoreEnvironment: true})
	m.getenv = func(name string) string {
		if name == "SPANNER_EMULATOR_HOST" {
			return host
		}
		return ""
	}
	e, err := startOn(t.Context(), o, m)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
	}
	return e, err
}

func TestRunningEmulatorGetsAFront(t *testing.T) {
	t.Parallel()
	running := start(t, Options{NoFront: true})
	require.NoError(t, running.CreateDatabase(t.Context(), database, accountTable))

	for _, scheme := range []string{"", "http://", "passthrough:///"} {
		e, err := withHost(t, scheme+running.Addr(), Options{})
		require.NoError(t, err)
		require.Equal(t, running.Addr(), e.BackendAddr())
		require.NotNil(t, e.Front())
		require.NoError(t, insertAccount(t.Context(), client(t, e, database), int64(len(scheme))))
		require.NoError(t, e.Close())
	}

	_, err := probeAddr(t.Context(), running.Addr())
	require.NoError(t, err, "Close leaves what ran before")
}

func TestRunningFrontIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	running := start(t, Options{})
	e, err := withHost(t, running.Addr(), Options{})
	require.NoError(t, err)
	require.Equal(t, running.Addr(), e.Addr())
	require.Empty(t, e.BackendAddr())
	require.Nil(t, e.Front())
	require.NoError(t, e.CreateDatabase(t.Context(), database))
	require.NoError(t, e.Close())

	_, err = probeAddr(t.Context(), running.Addr())
	require.NoError(t, err, "Close leaves what ran before")
}

func TestRunningServerThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	same := serveOtherFront(t, front.Version)
	other := serveOtherFront(t, "0.0.other")
	_, silent, err := listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	nobody := silent[0].Addr().String()
	closeAll(silent)

	for name, tc := range map[string]struct {
		host    string
		options Options
		says    string
	}{
		"front of another version": {other, Options{}, `a front of version "0.0.other" answers; this is version "` + front.Version + `"`},
		"front, bare wanted":       {same, Options{NoFront: true}, "Options.NoFront asks for a bare emulator"},
		"front, address wanted":    {same, Options{Addr: "127.0.0.1:0"}, "Options.Addr asks for one at 127.0.0.1:0"},
		"nobody":                   {nobody, Options{}, "nothing that is an emulator answers at " + nobody},
		"not an address":           {"emulator", Options{}, `SPANNER_EMULATOR_HOST is "emulator", which is not host:port`},
		"flags":                    {same, Options{Args: []string{"--log_requests"}}, "Options.Args are for an emulator to be started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := withHost(t, tc.host, tc.options)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
