package emulator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
)

// ErrDied is wrapped by what Err returns once the emulator has ended without Close.
var ErrDied = errors.New("emulator: ended by itself")

// Emulator is a running emulator. Its methods may be called from several goroutines.
type Emulator struct {
	addr    string
	backend string
	process *process         // nil for an emulator that ran already
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
	if err := e.open(ctx, opts); err != nil {
		return nil, err
	}
	started = true
	go e.watch()
	return e, nil
}

func (e *Emulator) open(ctx context.Context, opts Options) error {
	f, err := find(ctx, opts, thisMachine(opts))
	if err != nil {
		return err
	}
	b, err := openBackend(ctx, f, opts)
	if err != nil {
		return err
	}
	e.backend, e.process = b.addr, b.process
	e.addr = e.backend
	e.conn, err = dial(e.addr)
	return err
}

// watch waits for the end, whichever way it comes, and writes down why.
func (e *Emulator) watch() {
	defer close(e.done)
	var processDone <-chan struct{} // nil never comes
	if e.process != nil {
		processDone = e.process.done
	}
	select {
	case <-e.closing:
		return
	case <-processDone:
	}
	select {
	case <-e.closing: // Close was first
	default:
		e.err = fmt.Errorf("%w: %w", ErrDied, e.process.failure())
	}
}

// shut ends what open has begun, in the reverse order. It returns once all has ended.
func (e *Emulator) shut() error {
	var errs []error
	if e.conn != nil {
		errs = append(errs, e.conn.Close())
	}
	if e.process != nil {
		errs = append(errs, e.process.stop())
	}
	return errors.Join(errs...)
}

// Addr is the address for clients, as host:port.
func (e *Emulator) Addr() string { return e.addr }

// BackendAddr is the address of the bare emulator, as host:port.
func (e *Emulator) BackendAddr() string { return e.backend }

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
