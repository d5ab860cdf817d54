package emulatortest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator"
)

const (
	project = "projects/emulatortest"

	// createTimeout and dropTimeout bound single admin calls, which take milliseconds; a loaded machine is slower.
	createTimeout = 30 * time.Second
	dropTimeout   = 30 * time.Second
)

// Emulator is an emulator that tests use. Its methods may be called from parallel tests.
type Emulator struct {
	*emulator.Emulator
	databases atomic.Int64
}

// New starts an emulator for one test, with options of its own, and closes it when t has ended. The environment is not
// read, whatever opts says.
func New(t testing.TB, opts emulator.Options) *Emulator {
	t.Helper()
	e, err := start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("emulatortest: close the emulator of this test: %v", err)
		}
	})
	return e
}

// Shared returns the emulator of this test binary, which the first call starts.
func Shared(t testing.TB) *Emulator {
	t.Helper()
	e, err := shared.get()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func start(opts emulator.Options) (*Emulator, error) {
	opts.IgnoreEnvironment = true
	e, err := emulator.Start(context.Background(), opts)
	if err != nil {
		return nil, fmt.Errorf("emulatortest: %w", err)
	}
	return &Emulator{Emulator: e}, nil
}

// shared is process-wide because a test binary is: each test gets it from here and Main ends it.
var shared lazy

// lazy is an emulator that is started at most once. A failed start is not tried again: it would fail each test after
// the same wait.
type lazy struct {
	mu  sync.Mutex
	e   *Emulator
	err error
}

func (l *lazy) get() (*Emulator, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.e == nil && l.err == nil {
		l.e, l.err = start(emulator.Options{})
	}
	return l.e, l.err
}

func (l *lazy) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.e == nil {
		return nil
	}
	return l.e.Close()
}
