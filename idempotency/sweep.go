package idempotency

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/schema"
)

// Swept is what one sweep did and saw.
type Swept struct {
	// Deleted is the number of expired records that were deleted.
	Deleted int
	// Lag is how long the oldest of them had been expired, zero if there was
	// none.
	Lag time.Duration
	// Records and Bytes are the number of records that are left, and the size
	// of their results and steps.
	Records, Bytes int64
	// Oldest is the age of the oldest record that is left.
	Oldest time.Duration
	// Unfinished are the operations without an owner that have not ended, the
	// oldest first, at most 100. They are never deleted: what they may have
	// done outside is not known. The next call of the operation goes on with
	// them.
	Unfinished []Unfinished
	// InProgress is the age of the oldest operation that has not ended, with
	// an owner or without.
	InProgress time.Duration
}

// Unfinished is an operation that has not ended and that nobody works on.
type Unfinished struct {
	Operation Operation
	// State is in_progress or uncertain.
	State string
	// Point is the last step that has passed, empty if none has.
	Point string
	// Generation counts the owners that the operation has had.
	Generation int64
	Created    time.Time
}

const maxUnfinished = 100

// Sweep deletes the records that have expired, in transactions of
// ReaperConfig.Batch, and takes the figures. Each record is read again where it
// is deleted: one that a new operation has taken meanwhile stays. On an error
// the result says what was done until then.
func (r *Reaper) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	now, err := r.store.now(ctx)
	if err != nil {
		return swept, err
	}
	for shard := range int64(schema.OperationShards) {
		if err := r.sweepShard(ctx, shard, now, &swept); err != nil {
			return swept, fmt.Errorf("idempotency: sweep shard %d: %w", shard, err)
		}
	}
	if err := r.unfinished(ctx, &swept); err != nil {
		return swept, fmt.Errorf("idempotency: look for unfinished operations: %w", err)
	}
	if err := r.measure(ctx, now, &swept); err != nil {
		return swept, fmt.Errorf("idempotency: measure the table: %w", err)
	}
	r.store.figures.sweep(ctx, swept)
	return swept, nil
}

// expiredKey is a record that was seen to have expired.
type expiredKey struct {
	op          Operation
	completedAt time.Time
}

// sweepShard reads the index from its old end. Records that are kept longer
// than the Store's retention are passed over; those kept shorter wait until
// they reach it.
func (r *Reaper) sweepShard(ctx context.Context, shard int64, now time.Time, swept *Swept) error {
	s := r.store
	rows := s.client.Single().ReadWithOptions(ctx, s.table,
		spanner.KeyRange{Start: spanner.Key{shard, time.Unix(0, 0)}, End: spanner.Key{shard, now.Add(-s.retention)}, Kind: spanner.ClosedClosed},
		[]string{"Scope", "Operation", "OperationKey", "CompletedAt", "RetainSeconds"},
		&spanner.ReadOptions{Index: s.index, Priority: sppb.RequestOptions_PRIORITY_LOW})
	var batch []expiredKey
	err := rows.Do(func(row *spanner.Row) error {
		var k expiredKey
		var retain int64
		if err := row.Columns(&k.op.Scope, &k.op.Name, &k.op.Key, &k.completedAt, &retain); err != nil {
			return err
		}
		lag := now.Sub(k.completedAt.Add(time.Duration(retain) * time.Second))
		if lag < 0 {
			return nil
		}
		swept.Lag = max(swept.Lag, lag)
		if batch = append(batch, k); len(batch) < r.cfg.Batch {
			return nil
		}
		full := batch
		batch = nil
		return r.delete(ctx, full, swept)
	})
	if err != nil {
		return err
	}
	return r.delete(ctx, batch, swept)
}

// delete deletes those of the batch that are still as they were seen. That a
// commit may have landed unknown is of no importance here.
func (r *Reaper) delete(ctx context.Context, batch []expiredKey, swept *Swept) error {
	if len(batch) == 0 {
		return nil
	}
	s := r.store
	seen := make(map[Operation]time.Time, len(batch))
	keys := make([]spanner.Key, 0, len(batch))
	for _, k := range batch {
		seen[k.op] = k.completedAt
		keys = append(keys, k.op.storedKey())
	}
	var gone []*spanner.Mutation
	end := s.transact(ctx, "spanqueue-sweep", 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		gone = nil
		rows := tx.ReadWithOptions(ctx, s.table, spanner.KeySetFromKeys(keys...),
			[]string{"Scope", "Operation", "OperationKey", "CompletedAt"},
			&spanner.ReadOptions{LockHint: sppb.ReadRequest_LOCK_HINT_EXCLUSIVE, Priority: sppb.RequestOptions_PRIORITY_LOW})
		err := rows.Do(func(row *spanner.Row) error {
			var op Operation
			var completedAt spanner.NullTime
			if err := row.Columns(&op.Scope, &op.Name, &op.Key, &completedAt); err != nil {
				return err
			}
			if completedAt.Valid && completedAt.Time.Equal(seen[op]) {
				gone = append(gone, spanner.Delete(s.table, op.storedKey()))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return tx.BufferWrite(gone)
	})
	if end.err != nil {
		return end.err
	}
	swept.Deleted += len(gone)
	return nil
}

// unfinished reads the records that have not ended, which the index holds
// first, under NULL.
func (r *Reaper) unfinished(ctx context.Context, swept *Swept) error {
	s := r.store
	var ranges []spanner.KeySet
	for shard := range int64(schema.OperationShards) {
		ranges = append(ranges, spanner.Key{shard, spanner.NullTime{}}.AsPrefix())
	}
	var chunk []spanner.Key
	err := s.client.Single().ReadWithOptions(ctx, s.table, spanner.KeySets(ranges...),
		[]string{"Scope", "Operation", "OperationKey"},
		&spanner.ReadOptions{Index: s.index, Priority: sppb.RequestOptions_PRIORITY_LOW}).Do(func(row *spanner.Row) error {
		var op Operation
		if err := row.Columns(&op.Scope, &op.Name, &op.Key); err != nil {
			return err
		}
		if chunk = append(chunk, op.storedKey()); len(chunk) < r.cfg.Batch {
			return nil
		}
		full := chunk
		chunk = nil
		return r.look(ctx, full, swept)
	})
	if err != nil || len(chunk) == 0 {
		return err
	}
	return r.look(ctx, chunk, swept)
}

// look reads records by their keys, and keeps in mind the oldest of those that
// have not ended and have no owner.
func (r *Reaper) look(ctx context.Context, keys []spanner.Key, swept *Swept) error {
	tx := r.store.client.Single()
	var records []*record
	err := tx.ReadWithOptions(ctx, r.store.table, spanner.KeySetFromKeys(keys...), recordColumns,
		&spanner.ReadOptions{Priority: sppb.RequestOptions_PRIORITY_LOW}).Do(func(row *spanner.Row) error {
		rec, err := scanRecord(row)
		if err == nil && !rec.state.final() {
			records = append(records, rec)
		}
		return err
	})
	if err != nil || len(records) == 0 {
		return err
	}
	now, err := tx.Timestamp()
	if err != nil {
		return err
	}
	for _, rec := range records {
		swept.InProgress = max(swept.InProgress, now.Sub(rec.createdAt))
		if rec.leaseLeft(now) > 0 {
			continue
		}
		swept.Unfinished = append(swept.Unfinished, Unfinished{
			Operation: rec.op, State: string(rec.state), Point: rec.steps.point(), Generation: rec.generation, Created: rec.createdAt,
		})
	}
	slices.SortFunc(swept.Unfinished, func(a, b Unfinished) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Operation.Key, b.Operation.Key))
	})
	swept.Unfinished = swept.Unfinished[:min(len(swept.Unfinished), maxUnfinished)]
	return nil
}

// measure counts what is in the table: a scan of it, at low priority.
func (r *Reaper) measure(ctx context.Context, now time.Time, swept *Swept) error {
	query := spanner.NewStatement(`SELECT COUNT(*), COALESCE(SUM(COALESCE(LENGTH(ResultBody), 0) + COALESCE(LENGTH(Steps), 0)), 0), MIN(CreatedAt) FROM ` + r.store.table)
	return r.store.client.Single().QueryWithOptions(ctx, query, spanner.QueryOptions{Priority: sppb.RequestOptions_PRIORITY_LOW}).Do(func(row *spanner.Row) error {
		var oldest spanner.NullTime
		if err := row.Columns(&swept.Records, &swept.Bytes, &oldest); err != nil {
			return err
		}
		if oldest.Valid {
			swept.Oldest = max(0, now.Sub(oldest.Time))
		}
		return nil
	})
}
