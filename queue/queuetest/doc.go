// Package queuetest is for the tests of programs that use queues: a queue in memory, with faults and a clock of its own,
// and assertions that work on queues of every kind.
//
// # What the memory queue is for
//
// It serves the loops: receivers, processors, and handlers that touch no transaction. It keeps leases, rotates their
// tokens, delivers again when a lease ends, guards acknowledgements, counts attempts, keeps what was given up (Dead), and
// runs transactions that are serializable and roll back. There is no Spanner transaction in memory, so a handler that
// writes to the database is tested against the emulator (package emulatortest), and what needs a transaction or a mutation
// of Google's client fails here with ErrNoSpanner.
//
// It waits on time only, never on the outside: under testing/synctest an hour passes in microseconds.
//
// # Who decides
//
// The memory queue's own clock decides when a message is due and makes every stamp. SetOffset sets it apart from this
// machine's clock, and may be called again while things run, as if this machine's clock had been stepped. Leases are
// measured in elapsed time and are not changed by a step.
//
// # Faults
//
// SetFault says, call by call, what goes wrong: an answer that is late or lost, a call that is refused, a commit that
// landed although its caller was told otherwise, a stream that breaks or stalls.
//
// # Assertions
//
// RequireEmpty, RequireKeys, RequireSent and RequireDue look at a queue of any kind, in memory or on an emulator. Package
// processortest runs a handler over what is in it.
package queuetest
