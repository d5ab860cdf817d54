// Package processortest runs handlers over the messages of a queue in tests of programs that use them.
//
//	func TestShipping(t *testing.T) {
//		db := emulatortest.Database(t, ...)
//		q, err := queue.New(db.Client(t), orders)
//		...
//		got := processortest.Drain(t, q, processor.Tx(ship), processor.Config{})
//		require.EqualValues(t, 3, got[processor.Done])
//		queuetest.RequireEmpty(t, q)
//	}
//
// The queue may be one in memory (package queuetest), where waiting takes no time under testing/synctest, or one on an
// emulator (package emulatortest). The handler is run by a real processor: with leases, retries and dead letters.
//
// And a test that finds a handler which sends its mail inside of the transaction, where it may be sent twice:
//
//	processortest.Twice(t, db, q, processor.Tx(ship), processor.Config{})
//	require.Len(t, mailServer.Sent(), 1)
//
// # Which helper
//
//   - WorkOnce takes one delivery to its outcome and returns it.
//   - Drain goes on until no message is due any more, DrainAll until none is left, and so through retries.
//   - Twice makes a transaction's function run two times, as any database may: what reaches outside of the transaction then
//     shows, since it happens twice.
//
// # Leases
//
// What a stream brings beyond the messages that were handled is leased, and comes again when its lease ends. Several calls
// of WorkOnce on one queue may wait for that: give the emulator of the test short leases (front.Options.LeaseLength, with
// queue.LeaseLength).
//
// # Failures
//
// A helper that has nothing to do, or does not come to its end within a minute, fails the test and says what is left.
// Processors are always stopped before that, and leave no goroutine.
package processortest
