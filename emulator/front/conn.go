package front

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

// conn is a client's connection. It tells the transactions when it closes, and can be cut.
type conn struct {
	net.Conn
	client  *txn.Client
	closing sync.Once
}

// Close is called by gRPC when the connection ends, from whichever side.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.closing.Do(c.client.Close)
	return err
}

// connOf is the connection that an RPC came on.
func connOf(ctx context.Context) *conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(connInfo)
	if !ok {
		return nil
	}
	return info.conn
}

// clientOf is the connection that an RPC came on, as the transactions know it.
func clientOf(ctx context.Context) *txn.Client {
	if c := connOf(ctx); c != nil {
		return c.client
	}
	return nil
}

// plainText are credentials without any, whose only purpose is that RPCs know their connection: gRPC passes on what
// the handshake returns.
type plainText struct{ txns *txn.Manager }

type connInfo struct {
	credentials.CommonAuthInfo
	conn *conn
}

func (connInfo) AuthType() string { return "insecure" }

func (p plainText) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := &conn{Conn: raw, client: p.txns.NewClient()}
	return c, connInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, c}, nil
}

func (plainText) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("front: these credentials are a server's")
}

func (plainText) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
}

func (p plainText) Clone() credentials.TransportCredentials { return p }

func (plainText) OverrideServerName(string) error { return nil }
