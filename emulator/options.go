package emulator

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front"
)

const (
	defaultStartTimeout = 30 * time.Second
	defaultAddr         = "127.0.0.1:0"
)

// Options says which emulator is used and how. The zero value finds one, starts it on a free port and puts a front before
// it, on another.
type Options struct {
	// Binary is the path of an emulator_main to start. It overrides the search. Empty: search, in the order of the
	// package's documentation.
	Binary string

	// IgnoreEnvironment leaves SPANNER_EMULATOR_HOST and SPANNER_EMULATOR_BINARY unread, so that the emulator is
	// always a fresh one of this process. Tests want that. PATH is searched all the same.
	IgnoreEnvironment bool

	// Args are further flags for the emulator, for instance "--abort_current_transaction_probability=0". They cannot
	// set --host_port. They are refused together with an emulator that runs already. Empty: none.
	Args []string

	// Addr is where the front listens, as host:port. Empty: 127.0.0.1 and a free port. A port in use is refused.
	Addr string

	// Front says how the front behaves. Its zero value is the service's behaviour.
	Front front.Options

	// NoFront leaves the front out: clients talk to the bare emulator, which knows no queues.
	NoFront bool

	// StartTimeout bounds the search and the start together, besides the context given to Start. Zero: 30 seconds.
	StartTimeout time.Duration

	// Logger gets what the emulator prints, at level Debug, and is the front's where Front.Logger is nil. Nil: nothing of
	// the emulator is logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.Front.Logger == nil {
		o.Front.Logger = o.Logger
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	if o.StartTimeout < 0 {
		return fmt.Errorf("emulator: Options.StartTimeout is %v; it must be positive, or zero for %v", o.StartTimeout, defaultStartTimeout)
	}
	if o.Addr != "" {
		if _, _, err := net.SplitHostPort(o.Addr); err != nil {
			return fmt.Errorf("emulator: Options.Addr is %q; it must be host:port: %w", o.Addr, err)
		}
		if o.NoFront {
			return fmt.Errorf("emulator: Options.Addr is %q, but it is the front's address and Options.NoFront is set; set only one of them", o.Addr)
		}
	}
	if !o.NoFront {
		if err := o.Front.Validate(); err != nil {
			return fmt.Errorf("emulator: Options.Front: %w", err)
		}
	}
	for _, arg := range o.Args {
		if flag := strings.TrimLeft(arg, "-"); flag == "host_port" || strings.HasPrefix(flag, "host_port=") {
			return fmt.Errorf("emulator: Options.Args sets %q; the emulator's own port is always chosen by the system, and Options.Addr places the front", arg)
		}
	}
	return nil
}
