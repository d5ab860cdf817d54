package schema

import (
	"fmt"
	"time"
)

// OperationShards is the number of values of the Shard column of an operations
// table. Times of completion only grow; behind a shard they do not all go to
// the end of one index.
const OperationShards = 16

// DefaultOperationsRetention is the time for which a finished operation is
// remembered when Operations.Retention is zero.
const DefaultOperationsRetention = 48 * time.Hour

// Operations is the table of remembered operations that package idempotency
// works on. Applications read it if they like and never write it.
type Operations struct {
	// Name of the table. Empty: "Operations".
	Name string
	// Retention is how long a finished operation is remembered, from 1 second
	// on, counted from the commit that ended it. Zero: 48 hours. It is judged
	// when a record is read, to the second; the row itself goes later, by the
	// sweep of idempotency.Reaper or by the table's row deletion policy, which
	// counts whole days and is never shorter.
	Retention time.Duration
}

// WithDefaults returns the definition with zero values filled in.
func (o Operations) WithDefaults() Operations {
	if o.Name == "" {
		o.Name = "Operations"
	}
	if o.Retention == 0 {
		o.Retention = DefaultOperationsRetention
	}
	return o
}

// ByCompletion is the name of the index that finds finished operations by
// their age, and unfinished ones.
func (o Operations) ByCompletion() string { return o.WithDefaults().Name + "ByCompletion" }

// Statements returns the DDL that creates the table and its index.
//
// CompletedAt is NULL until the operation has ended, so neither the policy nor
// a sweep can touch work in progress. Times that are compared are commit
// timestamps: no client's clock is ever written.
func (o Operations) Statements() []string {
	o = o.WithDefaults()
	table := fmt.Sprintf(`CREATE TABLE %s (
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
  LeasedAt TIMESTAMP OPTIONS (allow_commit_timestamp=true),
  LeaseMillis INT64 NOT NULL,
  ResultCode INT64,
  ResultType STRING(255),
  ResultVersion INT64,
  ResultBody BYTES(MAX),
  BodyDropped BOOL,
  ResourceId STRING(1024),
  CreatedAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true),
  CompletedAt TIMESTAMP OPTIONS (allow_commit_timestamp=true),
  RetainSeconds INT64 NOT NULL
) PRIMARY KEY (Scope, Operation, OperationKey),
  ROW DELETION POLICY (OLDER_THAN(CompletedAt, INTERVAL %d DAY))`, o.Name, o.deletionDays())
	index := fmt.Sprintf(`CREATE INDEX %s ON %s (Shard, CompletedAt) STORING (RetainSeconds)`, o.ByCompletion(), o.Name)
	return []string{table, index}
}

// deletionDays rounds up: a row must not go before its record has expired.
func (o Operations) deletionDays() int64 {
	const day = 24 * time.Hour
	return int64((o.Retention + day - 1) / day)
}

// Validate reports the first thing that is wrong with the definition.
func (o Operations) Validate() error {
	o = o.WithDefaults()
	if o.Retention < time.Second {
		return fmt.Errorf("schema: Operations.Retention is %v; it must be at least 1s", o.Retention)
	}
	return nil
}
