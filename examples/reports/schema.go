package main

import "github.com/spanqueue/spanqueue/schema"

// requests is the queue of reports to make. The payload is the state of a report that was begun: empty at first.
var requests = schema.Queue{
	Name:       "ReportRequests",
	KeyColumns: []schema.Column{{Name: "Report", Type: schema.String(36), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// reports is the table of those that are made.
const reports = schema.SQL(`CREATE TABLE Reports (
  Report STRING(36) NOT NULL,
  Parts INT64 NOT NULL,
  Total INT64 NOT NULL,
) PRIMARY KEY (Report)`)

func elements() []schema.Element {
	return []schema.Element{requests, schema.Attempts{Queue: requests}, schema.DeadLetters{Queue: requests}, reports}
}
