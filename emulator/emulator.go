package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/spanqueue/spanqueue/emulator/front"
)

// ErrDied is wrapped by what Err returns once the emulator has ended without Close.
var ErrDied = errors.New("emulator: ended by itself")

// Emulator is a running emulator. Its methods may be called from several goroutines.
type Emulator struct {
	addr    string           // for clients
	backend string           // of the bare emulator; empty when a front that ran already is used
	process *process         // nil for an emulator that ran already
	front   *serving         // nil without a front of our own
	conn    *grpc.ClientConn // to addr, for the admin calls

	closeOnce sync.Once
	closing   chan struct{} // closed by Close
	done      chan struct{} // closed by watch
	err       error         // why it ended; read after done
	closeErr  error         // what Close returns; read after closeOnce
}

// Start finds an emulator as the package's documentation tells, starts it when it does not run yet, and returns once
// it answers. The end of ctx ends a start that is under way and nothing after it; Close ends the emulator. When Start
// fails, nothing is left running. The error wraps ErrNotFound when there is no emulator on the machine.
func Start(ctx context.Context, opts Options) (*Emulator, error) {
	return startOn(ctx, opts, thisMachine(opts))
}

func startOn(ctx context.Context, opts Options, m machine) (*Emulator, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.StartTimeout,
		fmt.Errorf("emulator: not ready within Options.StartTimeout, %v", opts.StartTimeout))
	defer cancel()

	e := &Emulator{closing: make(chan struct{}), done: make(chan struct{})}
	started := false
	defer func() { // also after a panic that the caller survives
		if !started {
			_ = e.shut()
		}
	}()
	if err := e.open(ctx, opts, m); err != nil {
		return nil, err
	}
	started = true
	go e.watch()
	return e, nil
}

func (e *Emulator) open(ctx context.Context, opts Options, m machine) error {
	var listeners []net.Listener
	if !opts.NoFront { // first, so that a port in use is refused before anything is started
		var err error
		if e.addr, listeners, err = listen(ctx, cmp.Or(opts.Addr, defaultAddr)); err != nil {
			return err
		}
	}
	taken := false
	defer func() {
		if !taken {
			closeAll(listeners)
		}
	}()

	f, err := find(ctx, opts, m, e.addr)
	if err != nil {
		return err
	}
	b, err := openBackend(ctx, f, opts)
	if err != nil {
		return err
	}
	e.process = b.process
	switch {
	case b.front != "":
		if err := reuse(b.addr, b.front, opts); err != nil {
			return err
		}
		e.addr = b.addr
	case opts.NoFront:
		e.addr, e.backend = b.addr, b.addr
	default:
		e.backend = b.addr
		taken = true
		if e.front, err = serve(ctx, b.addr, listeners, opts.Front); err != nil {
			return err
		}
	}
	e.conn, err = dial(e.addr)
	return err
}

// watch waits for the end, whichever way it comes, and writes down why.
func (e *Emulator) watch() {
	defer close(e.done)
	var (
		processDone <-chan struct{} // nil: never
		frontFailed <-chan error
		err         error
	)
	if e.process != nil {
		processDone = e.process.done
	}
	if e.front != nil {
		frontFailed = e.front.failed
	}
	select {
	case <-e.closing:
	case <-processDone:
		err = e.process.failure()
	case err = <-frontFailed:
	}
	select {
	case <-e.closing: // what ended, Close has ended
	default:
		e.err = fmt.Errorf("%w: %w", ErrDied, err)
	}
}

// shut ends what open has begun, in the reverse order. It returns once all has ended.
func (e *Emulator) shut() error {
	var errs []error
	if e.conn != nil {
		errs = append(errs, e.conn.Close())
	}
	if e.front != nil {
		errs = append(errs, e.front.close())
	}
	if e.process != nil {
		errs = append(errs, e.process.stop())
	}
	return errors.Join(errs...)
}

// Addr is the address for clients, as host:port: the front's, or the bare emulator's with Options.NoFront. It is what
// SPANNER_EMULATOR_HOST wants to be for programs in any language.
func (e *Emulator) Addr() string { return e.addr }

// BackendAddr is the address of the bare emulator, as host:port. It is empty when SPANNER_EMULATOR_HOST named a front
// that ran already, since a front does not tell what is behind it.
func (e *Emulator) BackendAddr() string { return e.backend }

// Front is the front, for its faults. It is nil with Options.NoFront, and when SPANNER_EMULATOR_HOST named a front that
// ran already, in another process.
func (e *Emulator) Front() *front.Server {
	if e.front == nil {
		return nil
	}
	return e.front.server
}

// Done is closed once the emulator has ended, by Close or by itself. There is no restart: an emulator keeps everything
// in memory, so that a new one would know no database. Calls answer UNAVAILABLE from then on. Of an emulator that ran
// before Start only Close is noticed.
func (e *Emulator) Done() <-chan struct{} { return e.done }

// Err tells why the emulator ended, with the last lines that it printed: an error that wraps ErrDied when it ended by
// itself, nil when Close ended it or while it runs. It does not block.
func (e *Emulator) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// Close ends what Start began and returns once it has ended. An emulator that ran before stays. Close may be called
// several times and returns the same.
func (e *Emulator) Close() error {
	e.closeOnce.Do(func() {
		close(e.closing)
		e.closeErr = e.shut()
		<-e.done
	})
	return e.closeErr
}
