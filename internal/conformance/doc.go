// Package conformance holds every kind of queue to one suite: native queues and queue tables through the emulator's front,
// both with handlers of Google's client and of database/sql, queue tables on the bare emulator with a client for each who is
// at work, and the queue in memory. The tests are the package; TestConformance is the suite.
//
// What a kind cannot show is in one table, with the reason (skips_test.go). What a kind can show is found out, not declared,
// and the suite fails where it and the table differ: when something is skipped that is not in the table, and when something
// is in it that could run.
//
// With SPANQUEUE_TEST_DATABASE=projects/P/instances/I/databases/D the suite also runs against a database of yours: native
// queues and queue tables on real Spanner, with the credentials that Google's client finds (or on the emulator that
// SPANNER_EMULATOR_HOST names). It creates queues and tables whose names begin with SpanqueueTest, and drops each at the
// end of its test; what could not be dropped is named. Leases take 10 s there, and a change of the schema up to a minute:
//
//	SPANQUEUE_TEST_DATABASE=projects/P/instances/I/databases/D go test -timeout 1h -run TestConformance/service ./internal/conformance
package conformance
