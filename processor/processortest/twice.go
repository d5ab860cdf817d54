package processortest

import (
	"fmt"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// Twice is WorkOnce with a transaction that the database aborts at its first commit, as it may any time: the handler's
// function runs, its writes are undone, it runs again and commits. Afterwards, whatever the function did within its
// transaction has happened once. Whatever it did outside, a mail, a counter in memory, a file, has happened twice: look at
// that in the test. q must be a queue of db; the handler one whose function runs in a transaction (Tx, Typed, Batch, Once,
// those of queuesql), and it must succeed.
//
// A Call's function is outside of the transaction, and runs once: it is its Settle that runs twice.
func Twice(t TB, db *emulatortest.DB, q *queue.Queue, h processor.Handler, config processor.Config) {
	t.Helper()
	if err := twice(db, q, h, config); err != nil {
		t.Fatalf("processortest: %v", err)
	}
}

func twice(db *emulatortest.DB, q *queue.Queue, h processor.Handler, config processor.Config) error {
	abort := db.Front().Faults().Add(fault.Rule{
		Name:     "processortest.Twice",
		Method:   "Commit",
		Database: db.Name,
		Tag:      backend.Tag("queue=" + q.Name()),
		Nth:      1,
		Do:       fault.Abort(),
	})
	defer abort.Remove()
	f, err := workOnce(q, h, config)
	if err != nil {
		return err
	}
	switch {
	case f.Deliveries[processor.Done] != 1:
		return fmt.Errorf("the handler should succeed in its second run, but the delivery ended so: %v", f.Deliveries)
	case abort.Applied() != 1:
		return fmt.Errorf("no commit of queue %s was aborted: is it a queue of %s?", q.Name(), db.Name)
	case f.Runs != 2:
		return fmt.Errorf("the transaction ran %d times, want 2", f.Runs)
	}
	return nil
}
