// Package table is the seam's implementation for queue tables (schema.QueueTable): a queue on an ordinary table, for every
// edition and for the bare emulator.
//
// # Terms
//
// A message is visible when its VisibleAt is over: nobody holds it, or the lease of whoever did has ended. To claim it is
// to move VisibleAt to the end of a new lease and to write the claim's token. A look is a read of the index for what is
// visible. A cell is one shard and one priority: the stretch of the index in which messages lie by VisibleAt.
//
// # States of a message
//
//	sent: VisibleAt = DueTime, no token ──── claim ────► leased: VisibleAt = lease's end, token of the claim
//	     ▲                                                │  ▲ renew: same token, later end
//	     ├── release: VisibleAt = now, no token ──────────┤  └─ claim by another when the end is over: new token
//	     └── resend: another DueTime, no token ───────────┴─ ack ─► gone
//
// # Who decides
//
// The database. What is due is judged by a time that is certainly over for it, leases are counted from one that it is
// certainly not behind of; both come from its own timestamps and are carried forward by the monotonic clock.
//
// # The fence
//
// Every write of a holder asserts the token besides the key and the due time: acknowledgement, renewal, resend, release. A
// claim by another changes the token, so that from then on every write of the one before misses. The assertion is a Read by
// key in the writing transaction, compared here; the write is a mutation. Nothing scans, nothing locks a range, and a miss
// is no failed statement. A failing acknowledgement makes its transaction unable to commit.
//
// # How a message is found
//
// A look reads the index by the Read API, strong, without locks, each cell from its low-water mark: below it nothing was
// left when it was last read. Every half minute a cell is read from its beginning. The claim then reads the rows by key
// with an exclusive lock hint and takes those that are still visible; others may have been quicker.
//
// # How soon
//
// A message that is due is found within Options.PollInterval plus a read, by a receiver that is not busy. A receiver that
// has looked a moment ago, or knows when the next message becomes visible, looks again sooner. Sends of this process wake
// its receivers at once. Two exceptions: a transaction of over 10 s that sent by a statement, and a message sent with a due
// time over 10 s in the past, may be found by the next read from the beginning only, after half a minute.
//
// # Order
//
// Within a shard, messages of a higher priority go first, then those that have been visible longer. Between shards chance
// decides. Claimers that meet give up some of the order to get out of each other's way.
//
// Where an ordering key is declared (schema.QueueTable.OrderColumns), its messages stand in a line and are in flight one at
// a time, by DueTime: see order.go. A lease that ends does not end a turn: the message keeps its place at the front. That
// its holder is late is, as everywhere, found out by its writes.
//
// # Attempts
//
// The row counts: each claim is a start. Release and TakeBack undo that for a claim that was nobody's attempt; what the
// processor finds out about failures and deferrals it writes with the message that it sends again. So a queue table needs no
// table of attempts beside it.
//
// # Cost
//
// A claim of n messages is three calls: a look, a read, a commit. An acknowledgement of n is two. Renewing n is two. Order
// adds a read for each line, at the claim and at the acknowledgement.
package table
