package fault

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errAway = status.Error(codes.Unavailable, "the database is away")

// outages knows which databases are away and cuts off what is under way there.
type outages struct {
	mu    sync.Mutex
	until map[string]time.Time
	calls map[string]map[*context.CancelCauseFunc]struct{}
}

// enter lets a call in, or answers that the database is away. The context it returns ends when the database goes away.
func (o *outages) enter(ctx context.Context, database string) (context.Context, func(), error) {
	if database == "" {
		return ctx, func() {}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if until, ok := o.until[database]; ok {
		if time.Now().Before(until) {
			return nil, nil, errAway
		}
		delete(o.until, database)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if o.calls == nil {
		o.calls = make(map[string]map[*context.CancelCauseFunc]struct{})
	}
	here := o.calls[database]
	if here == nil {
		here = make(map[*context.CancelCauseFunc]struct{})
		o.calls[database] = here
	}
	here[&cancel] = struct{}{}
	return ctx, func() { o.leave(database, &cancel) }, nil
}

func (o *outages) leave(database string, cancel *context.CancelCauseFunc) {
	(*cancel)(nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	here := o.calls[database]
	delete(here, cancel)
	if len(here) == 0 {
		delete(o.calls, database)
	}
}

// begin takes the database away for d.
func (o *outages) begin(database string, d time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.until == nil {
		o.until = make(map[string]time.Time)
	}
	o.until[database] = time.Now().Add(d)
	for cancel := range o.calls[database] {
		(*cancel)(errAway)
	}
	return errAway
}

func (o *outages) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.until)
}

// cause tells whether a context of enter ended because the database went away.
func (o *outages) cause(ctx context.Context) error {
	if context.Cause(ctx) == errAway {
		return errAway
	}
	return nil
}
