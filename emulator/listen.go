package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
)

// listen opens addr, a host and a port, for the front. It returns the address for clients: the host as it was given and
// the port that was bound.
//
// The sockets are plain ones that share their port with nobody, so that a port in use is refused. The emulator's own
// are not: two emulators share one port and each gets some of the calls.
//
// The name localhost may mean two addresses, and clients differ in which they try. All of them are opened, so that
// nobody else can answer on the other one.
func listen(ctx context.Context, addr string) (string, []net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	hosts := []string{host}
	if host == "localhost" {
		if hosts, err = net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return "", nil, fmt.Errorf("emulator: look up the addresses of %s: %w", host, err)
		}
		hosts = slices.Compact(slices.Sorted(slices.Values(hosts))) // a hosts file may have a line twice
	}
	opened, port, err := openSame(hosts, port, func(addr string) (net.Listener, error) {
		return new(net.ListenConfig).Listen(ctx, "tcp", addr)
	})
	if err != nil {
		return "", nil, listenError(addr, err)
	}
	if len(opened) == 0 {
		return "", nil, fmt.Errorf("emulator: listen at %s: this machine has none of the addresses %v", addr, hosts)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // all addresses is nothing that a client can be told to connect to
	}
	return net.JoinHostPort(host, port), opened, nil
}

// freeTries is how often a free port is looked for: the one that the first address got may be taken at the second.
const freeTries = 10

// openSame opens one port at all hosts that this machine has. A free one, port 0, is chosen by the first of them.
func openSame(hosts []string, port string, open func(addr string) (net.Listener, error)) (opened []net.Listener, bound string, err error) {
	number, notNumber := strconv.Atoi(port)
	tries := 1
	if port == "" || notNumber == nil && number == 0 {
		tries = freeTries
	}
	for range tries {
		if opened, bound, err = openOnce(hosts, port, open); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return opened, bound, err
}

func openOnce(hosts []string, port string, open func(addr string) (net.Listener, error)) (opened []net.Listener, bound string, err error) {
	for _, h := range hosts {
		lis, err := open(net.JoinHostPort(h, port))
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			continue // the name lists an address that this machine does not have, often ::1 in a container
		}
		if err != nil {
			closeAll(opened)
			return nil, "", err
		}
		opened = append(opened, lis)
		_, port, _ = net.SplitHostPort(lis.Addr().String())
	}
	return opened, port, nil
}

func listenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("emulator: the address %s is in use by another program: end it or choose another port, for instance 0 for a free one: %w", addr, err)
	}
	return fmt.Errorf("emulator: listen at %s: %w", addr, err)
}

func closeAll(listeners []net.Listener) {
	for _, lis := range listeners {
		lis.Close()
	}
}
