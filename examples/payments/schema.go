package main

import "github.com/spanqueue/spanqueue/schema"

// mails is the outbox: a ride that is paid sends a message in the commit that
// ends it. A message's key is its ride.
var mails = schema.Queue{
	Name:       "Mails",
	KeyColumns: []schema.Column{{Name: "RideId", Type: schema.String(36), NotNull: true}},
	Payload:    schema.JSON(),
}

// operations remembers the requests.
var operations = schema.Operations{}

// tables are the application's own. The unique index is the last guard: it
// holds when everything else is bypassed. Receipts have no key that would hide
// a second one.
const tables = schema.SQL(`
CREATE TABLE Rides (
  RideId   STRING(36) NOT NULL,
  Customer STRING(64) NOT NULL,
  Request  STRING(64) NOT NULL,
  Trip     STRING(64) NOT NULL,
  Cents    INT64 NOT NULL,
  ChargeId STRING(64),
  Mailed   INT64 NOT NULL,
) PRIMARY KEY (RideId);

CREATE UNIQUE INDEX RidesByRequest ON Rides (Customer, Request);

CREATE TABLE Receipts (
  ReceiptId STRING(36) NOT NULL DEFAULT (GENERATE_UUID()),
  RideId    STRING(36) NOT NULL,
  Trip      STRING(64) NOT NULL,
  ChargeId  STRING(64) NOT NULL,
  Cents     INT64 NOT NULL,
) PRIMARY KEY (ReceiptId);
`)
