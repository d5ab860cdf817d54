package txn

// State is where a transaction stands. The table in the front's doc.go has what each RPC is answered in each.
type State int

const (
	Begun      State = iota // it has an id, and nothing in the emulator
	Waiting                 // its first RPC that takes locks waits for the database's turn
	Active                  // it has the turn and a transaction of the emulator
	Committing              // Commit is on its way, or waits for the turn
	Committed
	Failed     // Commit was refused, for good
	Aborted    // ended by the front or by the emulator; the client is to run it again
	RolledBack // ended by the client
	Spent      // a partitioned DML transaction that has executed its statement
	Forgotten  // committed, and then forgotten by an injected fault
)

func (s State) String() string {
	return [...]string{"begun", "waiting", "active", "committing", "committed", "failed", "aborted", "rolled back",
		"spent", "forgotten"}[s]
}

// ended tells whether nothing can happen to the transaction any more.
func (s State) ended() bool { return s >= Committed }
