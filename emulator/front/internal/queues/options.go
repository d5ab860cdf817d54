package queues

import (
	"fmt"
	"time"
)

// Options tell how queues behave. The zero value is the service's behaviour where that is known.
type Options struct {
	// LeaseLength is how long a delivered message is leased, and by how much a renewal extends that. Zero: 10 s.
	LeaseLength time.Duration
	// Redelivery is how long a message rests after its lease has ended: after its first delivery, its second, and so
	// on; the last one holds for all that follow. Nil: it is ready when its lease has ended.
	Redelivery []time.Duration
	// ClockOffset is added to the machine's clock wherever a time is shown or a due time judged: lease stamps, the
	// DeliverTime of a message sent without one, CURRENT_TIMESTAMP. Commit timestamps stay the emulator's. A queue
	// keeps the offset with which it was created for the DeliverTime that INSERT statements leave out.
	ClockOffset time.Duration
}

func (o Options) withDefaults() Options {
	if o.LeaseLength == 0 {
		o.LeaseLength = 10 * time.Second
	}
	return o
}

func (o Options) validate() error {
	if o.LeaseLength <= 0 {
		return fmt.Errorf("queues: Options.LeaseLength is %v; it must be positive", o.LeaseLength)
	}
	for i, d := range o.Redelivery {
		if d < 0 {
			return fmt.Errorf("queues: Options.Redelivery[%d] is %v; it must be 0 or more", i, d)
		}
	}
	return nil
}
