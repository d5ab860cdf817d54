package lease

// Stats are figures of a Receiver. Waiting and InHand are of the moment; the others are counts since it was made.
type Stats struct {
	// Waiting counts the messages that were received and wait for a slot; WaitingBytes are their payloads.
	Waiting      int
	WaitingBytes int64
	// InHand counts the messages that were handed out and not released.
	InHand int

	// Received counts the deliveries that the streams brought; those that are here already are counted by Again.
	Received, Again int64
	// HandedOut counts the messages that Next returned.
	HandedOut int64
	// Expired counts the messages that were dropped while they waited because their leases had ended, or could not be
	// renewed.
	Expired int64
	// LetGo counts the messages that were dropped because no slot became free for MaxWait, or because Run was stopped.
	LetGo int64
	// Lost counts the leases that ended while their messages were in hand.
	Lost int64

	// RenewCalls counts the renewal calls, RenewErrors those that failed, Renewed the leases that were renewed, and
	// Unusable the tokens that could not be renewed: because the message was acknowledged, the lease had ended, or an
	// earlier answer was lost.
	RenewCalls, RenewErrors, Renewed, Unusable int64

	// Streams counts the receive streams that were opened, StreamErrors those that failed by themselves, and StreamsClosed
	// those that were closed here because enough had come: what was on its way then waits out its lease.
	Streams, StreamErrors, StreamsClosed int64
}

func (b *book) figures() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waiting, s.WaitingBytes, s.InHand = b.line.len(), b.line.bytes, b.held
	return s
}
