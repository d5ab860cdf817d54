package processortest_test

import (
	"context"
	"fmt"
	"log"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/processor/processortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
)

// exampleT stands for the *testing.T of a test.
type exampleT struct{}

func (exampleT) Helper()                           {}
func (exampleT) Fatalf(format string, args ...any) { log.Panicf(format, args...) }

// A handler that touches no transaction, tested in memory.
func ExampleDrain() {
	t, ctx := exampleT{}, context.Background()
	q := queuetest.New(orders, queuetest.Options{}).Queue()
	if err := q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{"o1"}}, {Key: spanner.Key{"o2"}}}); err != nil {
		log.Panic(err)
	}
	queuetest.RequireKeys(t, q, spanner.Key{"o1"}, spanner.Key{"o2"})

	ended := processortest.Drain(t, q, processor.Tx(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
		if m.Key[0] == "o2" {
			return processor.Discard(fmt.Errorf("order %v was cancelled", m.Key[0]))
		}
		return nil
	}), quiet)

	queuetest.RequireEmpty(t, q)
	fmt.Println(ended[processor.Done], "done,", ended[processor.Discarded], "discarded")
	// Output: 1 done, 1 discarded
}
