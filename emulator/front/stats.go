package front

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

// RPCs counts the RPCs that clients have begun, by bare method name ("Commit").
func (s *Server) RPCs() map[string]int64 { return s.counts.snapshot() }
