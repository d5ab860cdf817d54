package front

import (
	"fmt"
	"log/slog"
	"time"
)

// Version names the behaviour of this front. Every answer carries it in the header "x-spanqueue-front".
const Version = "1"

// VersionHeader is the response header with the front's Version.
const VersionHeader = "x-spanqueue-front"

// Options tell a front how to behave. The zero value is the service's behaviour where that is known.
type Options struct {
	// LeaseLength is how long a delivered message is leased, and by how much a renewal extends that. Zero means 10 s,
	// as on the service; tests make it shorter. At least 50 ms.
	LeaseLength time.Duration
	// Redelivery is the time that a message rests after its lease ended, for its first redelivery, the second, and so
	// on; the last one holds for all that follow. Nil means none: a message is due again when its lease ends.
	Redelivery []time.Duration
	// ClockOffset is added to the clock that the front shows in lease stamps and judges due times by, so that tests
	// can run with a database whose clock differs from theirs. Zero means the machine's clock.
	ClockOffset time.Duration
	// IdleBound is how long a transaction that holds its database's turn may do nothing and keep it: one that has done
	// nothing for so long loses the turn, and is ABORTED, as soon as somebody waits for it. While nobody waits it keeps
	// the turn, for up to an hour. Zero means 10 s, as on the service. At least 10 ms.
	IdleBound time.Duration
	// ClosedBound is how long a transaction outlives its client's connection. Zero means 1 s. At least 10 ms.
	ClosedBound time.Duration
	// RowDeletionInterval is how often the rows that row deletion policies let go are looked for and deleted, in tables
	// and queues of the databases that clients use. Zero means a minute (the service takes up to 72 hours); negative means
	// never, as in the bare emulator. At least 10 ms otherwise.
	RowDeletionInterval time.Duration
	// Latency is what requests wait for before they are looked at. Zero means nothing.
	Latency Latency
	// Logger gets what nobody else can be told: panics of handlers, sessions that could not be given back. Nil means
	// slog.Default().
	Logger *slog.Logger
}

// Validate reports what New would refuse: the field, its value and its bounds.
func (o Options) Validate() error { return o.withDefaults().validate() }

func (o Options) withDefaults() Options {
	if o.LeaseLength == 0 {
		o.LeaseLength = 10 * time.Second
	}
	if o.IdleBound == 0 {
		o.IdleBound = 10 * time.Second
	}
	if o.ClosedBound == 0 {
		o.ClosedBound = time.Second
	}
	if o.RowDeletionInterval == 0 {
		o.RowDeletionInterval = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// validate wants a filled copy.
func (o Options) validate() error {
	for _, b := range []struct {
		field    string
		v, least time.Duration
	}{
		{"LeaseLength", o.LeaseLength, 50 * time.Millisecond},
		{"IdleBound", o.IdleBound, 10 * time.Millisecond},
		{"ClosedBound", o.ClosedBound, 10 * time.Millisecond},
	} {
		if b.v < b.least {
			return fmt.Errorf("front: Options.%s is %v, want at least %v", b.field, b.v, b.least)
		}
	}
	if d := o.RowDeletionInterval; d >= 0 && d < 10*time.Millisecond {
		return fmt.Errorf("front: Options.RowDeletionInterval is %v, want at least 10ms, or less than 0 for never", d)
	}
	for i, d := range o.Redelivery {
		if d < 0 {
			return fmt.Errorf("front: Options.Redelivery[%d] is %v, want 0 or more", i, d)
		}
	}
	return o.Latency.validate()
}
