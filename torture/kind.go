package main

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// The kinds of queues, and what they run on.
const (
	nativeQueue = "native"
	tableQueue  = "table"

	onFront = "front"
	onBare  = "bare"
)

// setting is what a run is about: a kind of queue, with the front and all its faults before the emulator or on the bare
// emulator.
type setting struct {
	Queue    string
	Emulator string
}

func (s setting) validate() error {
	switch {
	case s.Queue != nativeQueue && s.Queue != tableQueue:
		return fmt.Errorf("-queue is %q, it must be %s or %s", s.Queue, nativeQueue, tableQueue)
	case s.Emulator != onFront && s.Emulator != onBare:
		return fmt.Errorf("-emulator is %q, it must be %s or %s", s.Emulator, onFront, onBare)
	case s.Queue == nativeQueue && s.bare():
		return fmt.Errorf("-emulator is %s and -queue %s: the bare emulator has no queues, -queue must be %s", onBare, nativeQueue, tableQueue)
	}
	return nil
}

func (s setting) bare() bool { return s.Emulator == onBare }

func (s setting) table() bool { return s.Queue == tableQueue }

func (s setting) String() string {
	switch {
	case s.bare():
		return "queue tables on the bare emulator"
	case s.table():
		return "queue tables"
	}
	return "queues"
}

// The queues, one for each kind of handler. A message's id begins with the queue's name.
const (
	txQueue    = "T"
	batchQueue = "B"
	callQueue  = "C"
)

var queueNames = []string{txQueue, batchQueue, callQueue}

func definition(name string) schema.Queue {
	return schema.Queue{
		Name:       name,
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(20), NotNull: true}},
		Payload:    schema.Bytes(1000),
	}
}

// tableDefinition gives one of the tables shards, so that both ways of looking for what is due are met.
func tableDefinition(name string) schema.QueueTable {
	t := schema.QueueTable{Queue: definition(name)}
	if name == txQueue {
		t.Shards = 4
	}
	return t
}

// elements are what stands in the database for a queue.
func (s setting) elements(name string) []schema.Element {
	q := definition(name)
	if s.table() { // it counts attempts by itself
		return []schema.Element{tableDefinition(name), schema.DeadLetters{Queue: q}}
	}
	return []schema.Element{q, schema.Attempts{Queue: q}, schema.DeadLetters{Queue: q}}
}

// pollInterval is how late a queue table's receiver finds what another process has sent.
const pollInterval = 100 * time.Millisecond

func (s setting) openQueue(client *spanner.Client, name string) (*queue.Queue, error) {
	if s.table() {
		return queue.NewTable(client, tableDefinition(name), queue.LeaseLength(leaseLength), queue.PollInterval(pollInterval))
	}
	return queue.New(client, definition(name), queue.LeaseLength(leaseLength))
}
