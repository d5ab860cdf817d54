package emulator

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/spanqueue/spanqueue/emulator/front"
)

// serving is a front that serves.
type serving struct {
	server *front.Server
	failed chan error // one slot; gets the error of a listener that failed
	loops  sync.WaitGroup
}

// serve puts a front before the emulator at backend. It takes the listeners over, also when it fails.
func serve(ctx context.Context, backend string, listeners []net.Listener, o front.Options) (*serving, error) {
	server, err := front.New(ctx, backend, o)
	if err != nil {
		closeAll(listeners)
		return nil, fmt.Errorf("emulator: put a front before %s: %w", backend, err)
	}
	s := &serving{server: server, failed: make(chan error, 1)}
	for _, lis := range listeners {
		s.loops.Go(func() {
			if err := server.Serve(lis); err != nil {
				select {
				case s.failed <- fmt.Errorf("emulator: the front stopped serving at %s: %w", lis.Addr(), err):
				default: // one is enough
				}
			}
		})
	}
	return s, nil
}

func (s *serving) close() error {
	err := s.server.Close()
	s.loops.Wait()
	return err
}

// reuse says whether the front of that version, found at addr, can serve in place of one of our own.
func reuse(addr, version string, o Options) error {
	const helps = "unset the variable, or set Options.IgnoreEnvironment, to have an emulator started"
	switch {
	case version != front.Version:
		return fmt.Errorf("emulator: SPANNER_EMULATOR_HOST names %s, where a front of version %q answers; this is version %q and only the same can be used: %s", addr, version, front.Version, helps)
	case o.NoFront:
		return fmt.Errorf("emulator: SPANNER_EMULATOR_HOST names %s, where a front answers, but Options.NoFront asks for a bare emulator: %s", addr, helps)
	case o.Addr != "":
		return fmt.Errorf("emulator: SPANNER_EMULATOR_HOST names %s, where a front answers, but Options.Addr asks for one at %s: %s", addr, o.Addr, helps)
	}
	return nil
}
