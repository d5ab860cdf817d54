package processor

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrRunning is returned by a second Run.
	ErrRunning = errors.New("processor: Run was called before; make a new Processor to run again")

	// ErrStopped is returned by a Run that comes after Shutdown.
	ErrStopped = errors.New("processor: Shutdown was called before Run")

	// ErrInvalid is wrapped when New refuses a configuration.
	ErrInvalid = errors.New("processor: invalid configuration")

	// ErrHandlerTimeout is the cause of a handler's context that ended at HandlerTimeout.
	ErrHandlerTimeout = errors.New("processor: the handler's time is over")

	// ErrDrainTimeout is the cause of a handler's context that ended because a stop has lasted for DrainTimeout, or the
	// context of Shutdown has ended.
	ErrDrainTimeout = errors.New("processor: stopping, and the time to drain is over")
)

// AbandonedError is returned by Run when handlers did not return although their contexts had ended. Their transactions
// do not commit, and their messages come back when the leases end.
type AbandonedError struct {
	Deliveries []Abandoned
}

// Abandoned is a delivery whose handler did not return. Its stack is in the process's goroutine profile (runtime/pprof with
// debug 1, or net/http/pprof at /debug/pprof/goroutine?debug=1), under the labels spanqueue_queue, spanqueue_handler and
// spanqueue_message; the latter is Message, of a batch its first.
type Abandoned struct {
	// Message is the delivery as text: key and due time.
	Message string
	// Since is when the handler was started, by this machine's clock.
	Since time.Time
}

func (e *AbandonedError) Error() string {
	names := make([]string, len(e.Deliveries))
	for i, d := range e.Deliveries {
		names[i] = fmt.Sprintf("%s (running for %v)", d.Message, time.Since(d.Since).Round(time.Millisecond))
	}
	return fmt.Sprintf("processor: stopped without %d handlers that ignored the end of their contexts: %s",
		len(names), strings.Join(names, "; "))
}

// PanicError is what a handler's panic becomes. It costs that delivery alone, and is retried like an error. The log has the
// stack, the dead letter has not.
type PanicError struct {
	// Value is what was panicked with; nil when the handler called runtime.Goexit.
	Value any
	// Stack is the handler's stack.
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "processor: the handler called runtime.Goexit"
	}
	return fmt.Sprintf("processor: the handler panicked: %v", e.Value)
}

// Unwrap returns the panic's value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
