// Package backend is the seam between the kinds of queue: native Spanner queues, queue tables, and the in-memory queue of
// queuetest. Packages queue, lease and processor are written against it; nobody outside the module sees it.
//
// # Terms
//
// A message is named by its key, for as long as it lives. A delivery is one hand-over of a message, named by the key and
// the DeliverTime that the receiver saw. A lease is the claim that came with a delivery; its token changes with each
// renewal.
//
// # Who decides
//
// The database decides everything that matters: whether a message is due, who holds it, whether an acknowledgement counts.
// Times in this package that come from the database are stamps to compare with each other, never with this machine's
// clock. Clock turns them into a server time that local, monotonic time carries forward.
//
// # Failure rules
//
// Every method obeys its context. Errors keep the gRPC status they came with (spanner.ErrCode works on them). A guarded
// write that finds another delivery, or none, fails with ErrNotHeld and leaves its transaction unable to commit.
package backend
