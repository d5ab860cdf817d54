package schema

import (
	"fmt"
	"time"
)

// OperationShards is the number of values of an operations table's Shard
// column. Times of completion only grow; behind a shard they do not all go to
// the end of one index.
const OperationShards = 16

// defaultRetention is what Operations.Retention means when it is zero.
const defaultRetention = 48 * time.Hour

// Operations is the table of remembered operations that package idempotency
// works on. The zero value is a usable definition.
type Operations struct {
	// Table is the table's name. Empty: "Operations".
	Table string
	// Retention is how long a finished operation is remembered, counted from
	// the commit that ended it, in whole seconds (rounded up). Zero: 48 hours.
	// At least 1 second. It is judged when a record is read. The row itself
	// goes later: by the sweep of idempotency.Reaper, or by the row deletion
	// policy, which counts whole days and is never the shorter of the two.
	Retention time.Duration
}

// TableName returns the name of the table.
func (o Operations) TableName() string {
	if o.Table == "" {
		return "Operations"
	}
	return o.Table
}

// IndexName returns the name of the index by time of completion, in which
// operations that have not ended come first.
func (o Operations) IndexName() string { return o.TableName() + "ByCompletion" }

// RetentionSeconds returns for how long a finished operation is remembered.
func (o Operations) RetentionSeconds() int64 {
	retention := o.Retention
	if retention == 0 {
		retention = defaultRetention
	}
	return int64((retention + time.Second - 1) / time.Second)
}

// Validate returns nil if the table can be made, and otherwise a *FieldError.
func (o Operations) Validate() error {
	if why := nameProblem(o.TableName()); why != "" {
		return fieldErrorf("Table", o.Table, "the table's name %s", why)
	}
	if why := nameProblem(o.IndexName()); why != "" {
		return fieldErrorf("Table", o.Table, "the name of its index, %s, %s", o.IndexName(), why)
	}
	if o.Retention != 0 && o.Retention < time.Second {
		return fieldErrorf("Retention", o.Retention.String(), "must be 0 (48h) or at least 1s")
	}
	return nil
}

// Statements returns the DDL that creates the table and its index.
//
// Every time in it is a commit timestamp, never a client's. A lease ends
// LeaseMillis after LeasedAt, a record expires RetainSeconds after CompletedAt.
// CompletedAt is NULL until the operation has ended, so that neither the policy
// nor a sweep can touch work in progress.
func (o Operations) Statements() []string {
	name := quoteIdent(o.TableName())
	const secondsOfDay = 24 * 60 * 60
	days := (o.RetentionSeconds() + secondsOfDay - 1) / secondsOfDay
	return []string{
		fmt.Sprintf(`CREATE TABLE %s (
  Scope STRING(128) NOT NULL,
  Operation STRING(128) NOT NULL,
  OperationKey STRING(255) NOT NULL,
  Shard INT64 NOT NULL,
  Fingerprint BYTES(32) NOT NULL,
  State STRING(16) NOT NULL,
  Point STRING(128),
  Steps BYTES(MAX),
  Owner STRING(36),
  Generation INT64 NOT NULL,
  LeasedAt TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  LeaseMillis INT64 NOT NULL,
  ResultCode INT64 NOT NULL,
  ResultType STRING(255),
  ResultVersion INT64 NOT NULL,
  ResultBody BYTES(MAX),
  BodyDropped BOOL NOT NULL,
  ResourceId STRING(1024),
  CreatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  CompletedAt TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  RetainSeconds INT64 NOT NULL,
) PRIMARY KEY (Scope, Operation, OperationKey),
ROW DELETION POLICY (OLDER_THAN(CompletedAt, INTERVAL %d DAY))`, name, days),
		fmt.Sprintf(`CREATE INDEX %s ON %s (Shard, CompletedAt) STORING (RetainSeconds)`, quoteIdent(o.IndexName()), name),
	}
}
