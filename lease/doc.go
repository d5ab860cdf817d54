// Package lease keeps what is held: it receives messages, renews their leases from the moment they arrive, and hands them
// out one by one to whoever has a free slot.
//
// Most programs get it through package processor, and meet a Held in their Call handlers.
//
// # Terms
//
// A lease is the claim that comes with a delivered message. Renewing it gives it a full length more and a new token; the
// old token is dead. The bound is the moment until which a lease is certainly ours. A message waits from its arrival until
// it is handed out, and is in hand until it is released.
//
// # Who decides
//
// The database decides whose a message is, at the commit that acknowledges it. Nothing here replaces that: a lease makes
// double work rare, the guarded acknowledgement makes double effects impossible.
//
// # What is trusted
//
// One thing: a lease lives at least until the send time of its last successful renewal, plus its length, minus a margin.
//
//	      sent        answered                      bound    sent+length
//	       |   . . . . .  |                           |<-margin->|
//	-------+--------------+---------------------------+----------+----> this process's monotonic clock, suspensions added
//	       the database renewed somewhere in here
//
// Not trusted are the wall clock, the lease's end as the database stamps it, and the time at which a row arrived, since
// how long it was on its way is not known. So a message that was never renewed has no bound. Work that only one may do at
// a time waits for Confirm; work inside a transaction may start at once, because its acknowledgement decides.
//
// # States of a message
//
//	arrives
//	   |
//	   v     its lease is over, or MaxWait is: dropped
//	waiting ------------------------------------------->  (comes again, here or elsewhere)
//	   | Next
//	   v     Defer, Checkpoint
//	in hand <-----------------> deferred
//	   |                           |
//	   |  the bound passes         |  the time of the deferral passes
//	   |  (contexts: ErrLost)      |  (contexts: ErrDeferralOver)
//	   v                           v
//	 over                        over
//
// Release ends each of the states below waiting.
//
// # Failure rules
//
// A renewal that fails says nothing: the lease may have been renewed, and its token be dead. The same token is sent again,
// and again with shrinking pauses; whichever call is answered counts. A call that is slow is not given up before what it
// protects is over.
//
// A token that is answered without a new one is not used again, but nothing is ended for it: Google's client executes a
// query again when its answer was lost, and then the lease lives on under a token that nobody knows. The bound holds.
//
// A message that comes again while it is here is not started a second time. While it is waiting or being worked on, its
// new lease carries on the old one.
//
// A stream that fails, stalls or ends early is opened again after a pause; no error of the database ends Run. A stream is
// drained at once into the list of the waiting. When enough wait it is closed, at the end of a batch; what is on its way
// then waits out its lease. How much is enough follows from the slots that are free and from how fast others become free.
// What is let go is given back at once where the queue can take it back, and waits out its lease otherwise; the end of Run
// waits for that for a second at most.
//
// A process that is stopped for a while finds its bounds passed when it goes on. So does one whose machine was suspended,
// on Linux: the monotonic clock stands still then, and the time is added to it. Next, Confirm and Bound know it at once,
// contexts end within an eighth of a lease after the machine has woken up. Elsewhere that time is not known, nor is it
// known anywhere when a hypervisor halts the whole machine: a holder may then take a message for its own for up to a
// lease, and one that has deferred it for the rest of its time, although it is somebody else's by now. The
// acknowledgement notices.
//
// A blocking or panicking logger delays nothing but the end of Run, for a second at most. Renewals and streams that fail
// again and again do not fill the log: they share lines, which get fewer, down to one a minute.
//
// # Cost
//
// One goroutine each for the stream, the keeper and the log; one for each renewal call while it lasts. Messages have none,
// and no timers. One call renews up to 900 leases.
package lease
