package schema

import (
	"fmt"
)

// QueueTable is an ordinary table that serves as a queue where there are no
// Spanner queues: every edition has tables, and so does the emulator. It offers
// what the queue that it stands for offers, and priorities besides.
//
// The table has the queue's key columns as its primary key, Payload, and the
// columns of QueueTableColumns. An index finds what is due:
//
//	(Shard, Priority, VisibleAt)
//
// and, where messages are ordered, a second one finds whose turn it is:
//
//	(ordering key, LeaseToken DESC, DueTime)
//
// A program in another language sends a message by an insert that gives the
// key, Payload and SentAt (PENDING_COMMIT_TIMESTAMP()); all else has defaults.
type QueueTable struct {
	// Queue is the queue that the table stands for: the table's name, key,
	// payload, interleaving and policy. A row deletion policy on DeliverTime
	// counts from DueTime, whether or not the message is leased. Options that
	// turn something off are the service's, and refused.
	Queue Queue
	// Shards spreads the index over so many values of a Shard column, 2 to 64,
	// so that messages that become due one after the other are not all written
	// to one end of it. 0 or 1: no such column. A queue with less than some
	// hundred messages a second needs none, and one more shard makes each look
	// at an idle queue a little dearer.
	Shards int
	// Priorities is how many priorities a message can have: 0 to Priorities-1,
	// and 0 goes first. At most 8; 0 or 1: all messages are alike. Within a
	// shard the order is strict, so that a lower priority waits while a higher
	// one has messages due. DeadLetters.Priorities has to be the same.
	Priorities int
	// OrderColumns makes the first so many columns of the primary key an
	// ordering key: of the messages that share it, one at a time is in flight,
	// in the order of DueTime. 0: no order. It is less than the number of key
	// columns, since the others tell the messages apart. A retry or deferral
	// gives a message a later DueTime, and so a later place. Order costs one
	// more read a message when it is claimed and one when it is acknowledged.
	OrderColumns int
}

// QueueTableColumns are the names of a queue table's columns besides the
// queue's key. They are the field names, with an underscore after those that
// the queue's key uses itself.
type QueueTableColumns struct {
	// Payload, of the queue's own type: the message.
	Payload string
	// DueTime TIMESTAMP: when the message was to become due. With the key it
	// names a delivery; a lease never touches it.
	DueTime string
	// VisibleAt TIMESTAMP: when the message may be claimed. It is DueTime at
	// first and the lease's end after a claim.
	VisibleAt string
	// LeaseToken STRING, may be NULL: drawn by whoever claimed the message last.
	LeaseToken string
	// Attempts INT64: claims of the message, but for those that were given back
	// or ended in a deferral. A processor keeps it when it sends the message
	// again. A claim counts when its process dies before the handler was called,
	// too.
	Attempts string
	// Errors INT64: those of the Attempts that failed. The others have not (yet)
	// reported an outcome.
	Errors string
	// Deferrals INT64: times the message was postponed without having failed.
	Deferrals string
	// FirstAt TIMESTAMP, may be NULL: the commit of the first of the Attempts.
	FirstAt string
	// SentAt TIMESTAMP: the commit that sent the message, or sent it again.
	SentAt string
	// Priority INT64: 0 goes first.
	Priority string
	// Shard INT64, drawn from the key's hash by whoever sends. Empty: the table
	// has none.
	Shard string
}

// Most shards and priorities that a queue table can have.
const (
	MaxShards     = 64
	MaxPriorities = 8
)

// leaseTokenLength is more than any token of the library's has.
const leaseTokenLength = 36

// ShardCount returns the number of shards, at least 1.
func (t QueueTable) ShardCount() int { return max(t.Shards, 1) }

// PriorityCount returns the number of priorities, at least 1.
func (t QueueTable) PriorityCount() int { return max(t.Priorities, 1) }

// Columns returns the names of the table's own columns.
func (t QueueTable) Columns() QueueTableColumns {
	q := t.Queue
	names := QueueTableColumns{
		Payload:    PayloadColumn,
		DueTime:    ownName(q, "DueTime"),
		VisibleAt:  ownName(q, "VisibleAt"),
		LeaseToken: ownName(q, "LeaseToken"),
		Attempts:   ownName(q, "Attempts"),
		Errors:     ownName(q, "Errors"),
		Deferrals:  ownName(q, "Deferrals"),
		FirstAt:    ownName(q, "FirstAt"),
		SentAt:     ownName(q, "SentAt"),
		Priority:   ownName(q, "Priority"),
	}
	if t.ShardCount() > 1 {
		names.Shard = ownName(q, "Shard")
	}
	return names
}

// IndexName returns the name of the index by which due messages are found.
func (t QueueTable) IndexName() string { return t.Queue.Name + "ByVisibleAt" }

// OrderIndexName returns the name of the index that tells whose turn it is.
// There is such an index only with OrderColumns.
func (t QueueTable) OrderIndexName() string { return t.Queue.Name + "InOrder" }

// Validate returns nil if the table can be made, and otherwise an error that
// wraps a *FieldError.
func (t QueueTable) Validate() error {
	if err := t.Queue.Validate(); err != nil {
		return fmt.Errorf("queue table %s: %w", t.Queue.Name, err)
	}
	options := t.Queue.Options
	options.ReceiveMode = "" // the one mode that there is means nothing here
	if options != (QueueOptions{}) {
		return fieldErrorf("Queue.Options", fmt.Sprintf("%+v", t.Queue.Options), "a table has none of a queue's options")
	}
	if why := nameProblem(t.IndexName()); why != "" {
		return fieldErrorf("Queue.Name", t.Queue.Name, "the name of the index, %s, %s", t.IndexName(), why)
	}
	if t.Shards < 0 || t.Shards > MaxShards {
		return fieldErrorf("Shards", fmt.Sprint(t.Shards), "must be 0 to %d", MaxShards)
	}
	if t.Priorities < 0 || t.Priorities > MaxPriorities {
		return fieldErrorf("Priorities", fmt.Sprint(t.Priorities), "must be 0 to %d", MaxPriorities)
	}
	if n := len(t.Queue.KeyParts()); t.OrderColumns < 0 || t.OrderColumns >= n {
		return fieldErrorf("OrderColumns", fmt.Sprint(t.OrderColumns), "must be 0 (no order) to %d, one less than the key has columns", n-1)
	}
	return nil
}
