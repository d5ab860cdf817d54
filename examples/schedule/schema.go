package main

import "github.com/spanqueue/spanqueue/schema"

var scheduleColumn = schema.Column{Name: "Schedule", Type: schema.String(64), NotNull: true}

// schedules is the queue of the clock: one message a schedule, due at its next slot. While the schedule is on, its message
// is in the queue.
var schedules = schema.Queue{
	Name:       "Schedules",
	KeyColumns: []schema.Column{scheduleColumn},
	Payload:    schema.JSON(),
}

// runs is the queue of the work: one message a slot. A run that fails is retried, and at last dead-lettered, while the clock
// goes on.
var runs = schema.Queue{
	Name:       "Runs",
	KeyColumns: []schema.Column{scheduleColumn, {Name: "Slot", Type: schema.Timestamp(), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// What came of the slots. Neither table has a key that would refuse a slot twice: a double run would be a second row.
const tables = schema.SQL(`CREATE TABLE Ran (
  Id STRING(36) NOT NULL DEFAULT (GENERATE_UUID()),
  Schedule STRING(64) NOT NULL,
  Slot TIMESTAMP NOT NULL,
  Worker STRING(16) NOT NULL,
  CommittedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
) PRIMARY KEY (Id);

CREATE TABLE Skipped (
  Id STRING(36) NOT NULL DEFAULT (GENERATE_UUID()),
  Schedule STRING(64) NOT NULL,
  After TIMESTAMP NOT NULL,
  Before TIMESTAMP NOT NULL,
) PRIMARY KEY (Id)`)

func elements() []schema.Element {
	return []schema.Element{
		schedules, // its processor never gives up, and so needs no tables for attempts and dead letters
		runs, schema.Attempts{Queue: runs}, schema.DeadLetters{Queue: runs},
		tables,
	}
}
