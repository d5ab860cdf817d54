package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/schema"
)

// Store remembers operations in one table. It is safe for concurrent use and
// has nothing to close.
type Store struct {
	client    *spanner.Client
	table     string
	index     string // by time of completion
	retention time.Duration
	cfg       Config
	figures   *figures
}

// New returns a Store on the table that the given definition made stand in the
// database of client. It makes no request.
func New(client *spanner.Client, table schema.Operations, cfg Config) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: New needs a client", ErrInvalid)
	}
	if err := table.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	cfg = cfg.withDefaults()
	retention := time.Duration(table.RetentionSeconds()) * time.Second
	if err := cfg.validate(retention); err != nil {
		return nil, err
	}
	f, err := newFigures(cfg.MeterProvider, table.TableName())
	if err != nil {
		return nil, fmt.Errorf("idempotency: make the instruments: %w", err)
	}
	return &Store{
		client: client, table: table.TableName(), index: table.IndexName(), retention: retention,
		cfg: cfg, figures: f,
	}, nil
}

// Lookup returns the receipt of an operation without doing anything, by a read
// that takes no lock: for polling, and for operators. It asks for no
// fingerprint, so the caller must have the right to see what the operation's
// scope may see. Errors: ErrInProgress (with RetryAfter; zero when nobody is at
// work and calling the operation again would go on), ErrUncertain, ErrNoRecord.
func (s *Store) Lookup(ctx context.Context, op Operation) (Receipt, error) {
	if err := op.validate(); err != nil {
		return Receipt{}, err
	}
	r, now, err := s.look(ctx, op)
	if err != nil {
		return Receipt{}, err
	}
	var fp Fingerprint
	if r != nil {
		fp = r.fingerprint
	}
	receipt, err := answer(op, r, fp, "", now)
	if err != nil {
		return Receipt{}, err
	}
	return s.present(ctx, op, receipt)
}

// Retention is how long a finished operation is remembered.
func (s *Store) Retention() time.Duration { return s.retention }

// Covers says whether two runs of an operation, one now and one at t, are
// certain to meet one record: whether t, in the past or to come, is less than
// the retention away from the database's present time. If not it returns an
// error that is ErrExpired. It is for what may bring an operation back late: a
// redrive of a message first sent at t, a deferral until t.
func (s *Store) Covers(ctx context.Context, t time.Time) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	if away := now.Sub(t).Abs(); away >= s.retention {
		return fmt.Errorf("%w, or may have: %v lies %v away and operations are remembered for %v",
			ErrExpired, t.UTC().Format(time.RFC3339), away.Round(time.Second), s.retention)
	}
	return nil
}

// TransactionOptions returns base with what a claim needs: serializable, with
// pessimistic locks. For transactions of the caller's own that use a Claim.
func TransactionOptions(base spanner.TransactionOptions) spanner.TransactionOptions {
	base.IsolationLevel = sppb.TransactionOptions_SERIALIZABLE
	base.ReadLockMode = sppb.TransactionOptions_ReadWrite_PESSIMISTIC
	return base
}

// look reads the record outside of any transaction, and the database's time.
// There is no record: nil.
func (s *Store) look(ctx context.Context, op Operation) (*record, time.Time, error) {
	tx := s.client.Single()
	row, err := tx.ReadRow(ctx, s.table, op.storedKey(), recordColumns)
	r, err := s.scan(op, row, err)
	if r == nil {
		return nil, time.Time{}, err
	}
	now, err := tx.Timestamp()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("idempotency: the time of a read: %w", err)
	}
	return r, now, nil
}

// readLocked reads the record in tx with an exclusive lock: whoever else wants
// to claim or write it waits, or is aborted and looks again.
func (s *Store) readLocked(ctx context.Context, tx *spanner.ReadWriteTransaction, op Operation) (*record, error) {
	row, err := tx.ReadRowWithOptions(ctx, s.table, op.storedKey(), recordColumns, &spanner.ReadOptions{
		LockHint:   sppb.ReadRequest_LOCK_HINT_EXCLUSIVE,
		RequestTag: "spanqueue-operation",
	})
	return s.scan(op, row, err)
}

// readToClaim is readLocked with the database's time, which only a record that
// is there makes worth a request.
func (s *Store) readToClaim(ctx context.Context, tx *spanner.ReadWriteTransaction, op Operation) (*record, time.Time, error) {
	r, err := s.readLocked(ctx, tx, op)
	if r == nil {
		return nil, time.Time{}, err
	}
	now, err := askTime(tx.Query(ctx, timeQuery))
	if err != nil {
		return nil, time.Time{}, err
	}
	return r, now, nil
}

var timeQuery = spanner.NewStatement("SELECT CURRENT_TIMESTAMP")

// now asks for the database's time.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	return askTime(s.client.Single().Query(ctx, timeQuery))
}

func askTime(rows *spanner.RowIterator) (time.Time, error) {
	var now time.Time
	err := rows.Do(func(row *spanner.Row) error { return row.Column(0, &now) })
	if err != nil {
		return time.Time{}, fmt.Errorf("idempotency: ask for the database's time: %w", err)
	}
	return now, nil
}

func (s *Store) scan(op Operation, row *spanner.Row, err error) (*record, error) {
	if errors.Is(err, spanner.ErrRowNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", errUnread, op, err)
	}
	return scanRecord(row)
}

// present fills the body of a replay in from the resource, see Config.Present.
func (s *Store) present(ctx context.Context, op Operation, r Receipt) (Receipt, error) {
	if s.cfg.Present == nil || !r.Replayed || len(r.Body) > 0 || r.ResourceID == "" {
		return r, nil
	}
	result, err := s.cfg.Present(ctx, op, r)
	if err != nil {
		return r, fmt.Errorf("idempotency: show the resource of %v: %w", op, err)
	}
	r.Result, r.Present = result, true
	return r, nil
}
