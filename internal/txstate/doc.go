// Package txstate finds out what became of a transaction of Google's client
// where the client knows it and does not tell: whether the database has aborted
// it, and whether its Commit was sent at all. Both lean on how the client
// behaves; the tests of package idempotency notice when a later one does
// otherwise.
package txstate
