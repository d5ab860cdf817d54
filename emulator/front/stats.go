package front

import (
	"context"
	"fmt"
)

// Stats is how a front stands.
type Stats struct {
	// OpenTransactions are the read-write and partitioned DML transactions that clients have begun and that have not
	// ended. Read-only ones are not counted: the front keeps nothing of them.
	OpenTransactions int
	// Waiting is how many RPCs wait for the turn of their database.
	Waiting int
}

// Stats counts now.
func (s *Server) Stats() Stats {
	open, waiting := s.txns.Stats()
	return Stats{OpenTransactions: open, Waiting: waiting}
}

// QueueStats is how a queue stands. The counts begin with the queue's first receive query, and end with the queue.
type QueueStats struct {
	// Receivers are the receive queries that are open.
	Receivers int
	// Delivered is how many messages were leased and sent to a receiver, each as often as that happened.
	Delivered int64
	// Redelivered is how many of them had been delivered before: their lease had ended, and they were still there. A test
	// that renews everything in time finds 0, if somebody with room receives all the while.
	Redelivered int64
}

// QueueStats counts now. The database is its full name. The error has the code NOT_FOUND if there is no such queue; an
// emulator that knows queues itself keeps them to itself.
func (s *Server) QueueStats(ctx context.Context, database, queue string) (QueueStats, error) {
	receivers, delivered, err := s.queues.Stats(ctx, database, queue)
	if err != nil {
		return QueueStats{}, fmt.Errorf("front: %w", err)
	}
	return QueueStats{Receivers: receivers, Delivered: delivered.All, Redelivered: delivered.Again}, nil
}

// RPCs counts the RPCs that clients have begun, by bare method name ("Commit").
func (s *Server) RPCs() map[string]int64 { return s.counts.snapshot() }
