package main

import "github.com/spanqueue/spanqueue/schema"

var orderColumn = schema.Column{Name: "OrderId", Type: schema.String(36), NotNull: true}

// steps is the queue of the steps that orders go through: one queue, and the kind of a message is in its key. So an order has
// one message a step, and dead letters are told apart by it.
var steps = schema.Queue{
	Name:       "OrderSteps",
	KeyColumns: []schema.Column{orderColumn, {Name: "Kind", Type: schema.String(20), NotNull: true}},
	Payload:    schema.JSON(),
}

// answers is the queue of what customers are to be told. It is one of its own, since its messages are handled many at a time.
var answers = schema.Queue{
	Name:       "OrderAnswers",
	KeyColumns: []schema.Column{orderColumn},
	Payload:    schema.JSON(),
}

// Stock and Owed are counters, and Mails has a key that is drawn: whatever was done twice would show.
const tables = schema.SQL(`CREATE TABLE Orders (
  OrderId STRING(36) NOT NULL,
  Status STRING(20) NOT NULL,
) PRIMARY KEY (OrderId);

CREATE TABLE Stock (
  Item STRING(20) NOT NULL,
  Cents INT64 NOT NULL,
  InStock INT64 NOT NULL,
) PRIMARY KEY (Item);

CREATE TABLE Customers (
  Customer STRING(20) NOT NULL,
  Owed INT64 NOT NULL,
) PRIMARY KEY (Customer);

CREATE TABLE Mails (
  Id STRING(36) NOT NULL DEFAULT (GENERATE_UUID()),
  OrderId STRING(36) NOT NULL,
  Text STRING(200) NOT NULL,
) PRIMARY KEY (Id)`)

func elements() []schema.Element {
	return []schema.Element{
		steps, schema.Attempts{Queue: steps}, schema.DeadLetters{Queue: steps},
		answers, schema.Attempts{Queue: answers}, schema.DeadLetters{Queue: answers},
		tables,
	}
}
