package front_test

import (
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// BenchmarkQueuePickup measures from the answer to the commit of a send to the row at an open receiver, on a fresh
// emulator, through Google's client. The rows are acknowledged outside of the measured time.
func BenchmarkQueuePickup(b *testing.B) {
	c := emulatortest.New(b, emulator.Options{}).Database(b, taskQueue).Client(b)
	open := receiveTasks(b, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '20m')")
	var took []time.Duration
	id := 0
	for b.Loop() {
		id++
		apply(b, c, spanner.Send("Tasks", spanner.Key{id}, "x"))
		committed := time.Now()
		open.next(b)
		took = append(took, time.Since(committed))
		b.StopTimer()
		apply(b, c, spanner.Ack("Tasks", spanner.Key{id}))
		b.StartTimer()
	}
	slices.Sort(took)
	milliseconds := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(milliseconds(0.50), "p50-ms")
	b.ReportMetric(milliseconds(0.99), "p99-ms")
}
