package idempotency

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/spanner"
)

// Bounds of a result's parts, in characters, as the table has them.
const (
	maxResultType = 255
	maxResourceID = 1024
)

// newRecord is the record of an operation that begins; old is the expired one
// that it replaces, or nil. Generations go on rising, so that a run of the
// former life is not taken for one of this.
func (s *Store) newRecord(c *Claim, old *record) *record {
	r := &record{op: c.op, fingerprint: c.fp, state: inProgress, createdAt: spanner.CommitTimestamp}
	if old != nil {
		r.generation = old.generation
	}
	s.own(r, c.owner)
	return r
}

// own makes owner the owner of r, one generation on.
func (s *Store) own(r *record, owner string) {
	r.owner = owner
	r.generation++
	r.leasedAt, r.lease = spanner.CommitTimestamp, s.cfg.Lease
	r.retain = s.retention
}

// finish makes r final. The steps are of no more use.
func (s *Store) finish(r *record, end state, result Result) error {
	switch {
	case !utf8.ValidString(result.Type):
		return fmt.Errorf("%w: Result.Type is not valid UTF-8, which the database's STRING needs: %q", ErrInvalid, result.Type)
	case !utf8.ValidString(result.ResourceID):
		return fmt.Errorf("%w: Result.ResourceID is not valid UTF-8, which the database's STRING needs: %q", ErrInvalid, result.ResourceID)
	case utf8.RuneCountInString(result.Type) > maxResultType:
		return fmt.Errorf("%w: Result.Type has more than %d characters", ErrInvalid, maxResultType)
	case utf8.RuneCountInString(result.ResourceID) > maxResourceID:
		return fmt.Errorf("%w: Result.ResourceID has more than %d characters", ErrInvalid, maxResourceID)
	case len(result.Body) > s.cfg.MaxBody && !s.cfg.DropLargeBodies:
		return fmt.Errorf("%w: the body has %d bytes and Config.MaxBody is %d", ErrTooLarge, len(result.Body), s.cfg.MaxBody)
	case len(result.Body) > s.cfg.MaxBody:
		result.Body, r.bodyDropped = nil, true
	}
	r.state, r.result, r.steps = end, result, nil
	r.completedAt = spanner.CommitTimestamp
	r.retain = s.retention
	return nil
}

// buffer writes a whole record in tx, over one that is there or as a new row.
// It is a mutation: it goes by key, costs no request before Commit, and cannot
// fail before it.
func (s *Store) buffer(tx *spanner.ReadWriteTransaction, r *record, replace bool) error {
	columns, values, err := r.row()
	if err != nil {
		return err
	}
	write := spanner.Insert
	if replace {
		write = spanner.Update
	}
	if err := tx.BufferWrite([]*spanner.Mutation{write(s.table, columns, values)}); err != nil {
		return fmt.Errorf("idempotency: write the record of %v: %w", r.op, err)
	}
	return nil
}

// row is the inverse of scanRecord, with what only people and indexes read
// besides.
func (r *record) row() ([]string, []any, error) {
	steps, err := r.steps.encode()
	if err != nil {
		return nil, nil, fmt.Errorf("idempotency: write the steps of %v: %w", r.op, err)
	}
	values := []any{
		r.op.Scope, r.op.Name, r.op.Key, r.fingerprint[:], string(r.state), steps, nullString(r.owner), r.generation,
		nullTime(r.leasedAt), r.lease.Milliseconds(), r.result.Code, nullString(r.result.Type), r.result.Version, r.result.Body, r.bodyDropped,
		nullString(r.result.ResourceID), r.createdAt, nullTime(r.completedAt), int64(r.retain / time.Second),
		nullString(r.steps.point()), r.op.shard(),
	}
	return append(append([]string(nil), recordColumns...), "Point", "Shard"), values, nil
}

func nullString(s string) spanner.NullString {
	return spanner.NullString{StringVal: s, Valid: s != ""}
}

func nullTime(t time.Time) spanner.NullTime {
	return spanner.NullTime{Time: t, Valid: !t.IsZero()}
}

// poison makes sure that tx cannot commit, also if its caller passes over the
// error: it buffers an insert into a table that does not exist, named for the
// reason, which then stands in the error of Commit.
func poison(tx *spanner.ReadWriteTransaction, reason error) {
	table := "spanqueue_operation_not_done"
	for _, known := range []struct {
		err   error
		table string
	}{
		{ErrMismatch, "spanqueue_operation_mismatch"},
		{ErrInProgress, "spanqueue_operation_in_progress"},
		{ErrUncertain, "spanqueue_operation_uncertain"},
		{ErrNotOwner, "spanqueue_operation_not_owned"},
	} {
		if errors.Is(reason, known.err) {
			table = known.table
		}
	}
	// BufferWrite refuses a transaction that has ended: it cannot commit then.
	_ = tx.BufferWrite([]*spanner.Mutation{spanner.Insert(table, []string{"Reason"}, []any{table})})
}
