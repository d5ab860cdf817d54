package idempotency

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// state is what a record's State column holds. doc.go has the diagram.
type state string

const (
	inProgress state = "in_progress"
	uncertain  state = "uncertain"
	completed  state = "completed"
	failed     state = "failed"
)

func (s state) final() bool { return s == completed || s == failed }

// record is a row of the operations table.
type record struct {
	op          Operation
	fingerprint Fingerprint
	state       state
	steps       journal
	// owner is the token of the call that works on the operation, or that
	// ended it; empty when it gave it up.
	owner      string
	generation int64
	// The lease lasts from leasedAt, a commit timestamp, for lease.
	leasedAt time.Time
	lease    time.Duration

	result      Result
	bodyDropped bool
	createdAt   time.Time
	// completedAt is zero until the state is final.
	completedAt time.Time
	retain      time.Duration
}

var recordColumns = []string{
	"Scope", "Operation", "OperationKey", "Fingerprint", "State", "Steps", "Owner", "Generation",
	"LeasedAt", "LeaseMillis", "ResultCode", "ResultType", "ResultVersion", "ResultBody", "BodyDropped",
	"ResourceId", "CreatedAt", "CompletedAt", "RetainSeconds",
}

func scanRecord(row *spanner.Row) (*record, error) {
	var (
		r                               record
		fingerprint, steps              []byte
		owner, resultType, resource     spanner.NullString
		code, version                   spanner.NullInt64
		dropped                         spanner.NullBool
		leasedAt, completedAt           spanner.NullTime
		leaseMillis, retainSeconds      int64
		scope, name, key, recordedState string
	)
	err := row.Columns(&scope, &name, &key, &fingerprint, &recordedState, &steps, &owner, &r.generation,
		&leasedAt, &leaseMillis, &code, &resultType, &version, &r.result.Body, &dropped,
		&resource, &r.createdAt, &completedAt, &retainSeconds)
	if err != nil {
		return nil, fmt.Errorf("idempotency: read a record: %w", err)
	}
	r.op = Operation{Scope: scope, Name: name, Key: key}
	if copy(r.fingerprint[:], fingerprint) != len(r.fingerprint) {
		return nil, fmt.Errorf("idempotency: the record of %v has a fingerprint of %d bytes", r.op, len(fingerprint))
	}
	if r.steps, err = parseJournal(steps); err != nil {
		return nil, fmt.Errorf("idempotency: the record of %v: %w", r.op, err)
	}
	r.state = state(recordedState)
	r.owner = owner.StringVal
	r.leasedAt, r.lease = leasedAt.Time, time.Duration(leaseMillis)*time.Millisecond
	r.result.Code, r.result.Version = code.Int64, version.Int64
	r.result.Type, r.result.ResourceID = resultType.StringVal, resource.StringVal
	r.bodyDropped = dropped.Bool
	r.completedAt, r.retain = completedAt.Time, time.Duration(retainSeconds)*time.Second
	return &r, nil
}

// leaseLeft is how long the owner may still be at work. Zero: nobody is.
func (r *record) leaseLeft(now time.Time) time.Duration {
	if r.owner == "" || r.state.final() {
		return 0
	}
	return max(0, r.leasedAt.Add(r.lease).Sub(now))
}

// expired says whether the record counts as gone, be the row still there or
// not. A record that is not final never expires.
func (r *record) expired(now time.Time) bool {
	return r.state.final() && !now.Before(r.completedAt.Add(r.retain))
}

// receipt is the answer of a final record for the call that owns the token.
func (r *record) receipt(owner string) Receipt {
	return Receipt{
		Result:      r.result,
		Refused:     r.state == failed,
		Replayed:    r.owner != owner,
		BodyDropped: r.bodyDropped,
		Completed:   r.completedAt,
		Expires:     r.completedAt.Add(r.retain),
	}
}
