// Package conformance holds every kind of queue to one suite: native queues through the emulator's front, queue tables
// through the front and on the bare emulator with a client for each worker, and the queue in memory. The tests are the
// package; TestConformance is the suite.
//
// What a kind cannot show is in the table of skips, with the reason. The suite fails when a scenario is skipped that is
// not in it, and when one that is in it could run.
//
// With SPANQUEUE_TEST_DATABASE=projects/P/instances/I/databases/D the suite also runs against a database of yours: native
// queues and queue tables on real Spanner, with the credentials that Google's client finds. It creates queues and tables
// whose names begin with SpanqueueTest, and drops them at the end. A lease takes 10 s there, so it takes minutes.
package conformance
