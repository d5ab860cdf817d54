package main

import (
	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/schema"
)

// purchases is the queue. A message's key is its operation, so that two messages of one operation cannot be in the queue
// at the same time; but the key is free again as soon as the first one has been acknowledged.
var purchases = schema.Queue{
	Name: "Purchases",
	KeyColumns: []schema.Column{
		{Name: "Account", Type: schema.String(20), NotNull: true},
		{Name: "OrderId", Type: schema.String(20), NotNull: true},
		{Name: "Kind", Type: schema.String(20), NotNull: true},
	},
	Payload: schema.JSON(),
}

// records is the table in which the operations are remembered.
var records = schema.Operations{}

// tables hold what the handler writes besides. Answers has a key of its own, and not the operation's: a grant that is made twice
// must be able to leave two rows, or the proof would prove nothing.
const tables = schema.SQL(`
CREATE TABLE Accounts (
  Account STRING(20) NOT NULL,
  Balance INT64 NOT NULL,
) PRIMARY KEY (Account);

CREATE TABLE Answers (
  AnswerId STRING(36) NOT NULL DEFAULT (GENERATE_UUID()),
  Account  STRING(20) NOT NULL,
  OrderId  STRING(20) NOT NULL,
  Kind     STRING(20) NOT NULL,
  Points   INT64 NOT NULL,
  Outcome  STRING(20) NOT NULL,
  Reason   STRING(100) NOT NULL,
  Balance  INT64 NOT NULL,
) PRIMARY KEY (AnswerId);
`)

// key is the operation as a Spanner key of the queue.
func (o operation) key() spanner.Key { return spanner.Key{o.Account, o.Order, o.Kind} }
