package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/grpc/codes"
)

// ErrGone says that there is no such letter, or none any more. Package queue exports it.
var ErrGone = errors.New("queue: no such dead letter")

// ID names a letter.
type ID struct {
	Key    spanner.Key // in the types of package rowcodec
	DeadAt time.Time
}

// Letter is a letter as it is stored.
type Letter struct {
	ID
	Payload       []byte // nil where it was not asked for
	DeliverTime   time.Time
	Reason, Error string
	Attempts      int
	First, Last   time.Time // zero where not known
	Handler       string
	Priority      int // 0 where the queue has no priorities
}

// Store is the dead letters of one queue.
type Store struct {
	queue    backend.Queue
	client   *spanner.Client
	table    string
	names    schema.DeadLetterColumns
	keys     []string // key columns of the queue
	columns  []string // keys, then the letter's own without its payload
	key      rowcodec.Key
	payload  rowcodec.Payload
	timeouts timeouts
}

// New returns the dead letters of the queue. It sends nothing.
func New(q backend.Queue) (*Store, error) {
	if q.Client() == nil {
		return nil, fmt.Errorf("queue: %s is in memory and has no table of dead letters", q.Definition().Name)
	}
	key, err := rowcodec.NewKey(q.Definition())
	if err != nil {
		return nil, err
	}
	d := schema.DeadLetters{Queue: q.Definition()}
	if p, ok := q.(backend.Prioritizer); ok {
		d.Priorities = p.PriorityCount()
	}
	s := &Store{
		queue:    q,
		client:   q.Client(),
		table:    d.TableName(),
		names:    d.Columns(),
		keys:     key.Columns(),
		key:      key,
		payload:  rowcodec.NewPayload(q.Definition().Payload),
		timeouts: defaultTimeouts,
	}
	n := s.names
	s.columns = append(key.Columns(), n.DeadAt, n.DeliverTime, n.Reason, n.Error, n.Attempts, n.FirstAt, n.LastAt, n.Handler)
	if n.Priority != "" {
		s.columns = append(s.columns, n.Priority)
	}
	return s, nil
}

// ID checks a key of the caller's and makes a name of it.
func (s *Store) ID(key spanner.Key, deadAt time.Time) (ID, error) {
	key, err := s.key.Normalize(key)
	return ID{Key: key, DeadAt: deadAt}, err
}

// Get returns the letter, or ErrGone.
func (s *Store) Get(ctx context.Context, id ID) (Letter, error) {
	l, err := s.read(ctx, s.client.Single(), id, nil)
	return l, s.explain(err)
}

// reader is a transaction that reads.
type reader interface {
	ReadWithOptions(ctx context.Context, table string, keys spanner.KeySet, columns []string, opts *spanner.ReadOptions) *spanner.RowIterator
}

func (s *Store) read(ctx context.Context, t reader, id ID, o *spanner.ReadOptions) (Letter, error) {
	letter, found := Letter{}, false
	key := append(id.Key[:len(id.Key):len(id.Key)], id.DeadAt)
	columns := append(s.columns[:len(s.columns):len(s.columns)], s.names.Payload)
	err := t.ReadWithOptions(ctx, s.table, key, columns, o).Do(func(row *spanner.Row) (err error) {
		found = true
		if letter, err = s.letter(row); err != nil {
			return err
		}
		letter.Payload, err = s.payload.Read(row, len(s.columns))
		return err
	})
	if err == nil && !found {
		err = ErrGone
	}
	return letter, err
}

// letter reads a row that was selected with the columns of s.columns in front.
func (s *Store) letter(row *spanner.Row) (Letter, error) {
	var l Letter
	var err error
	if l.Key, err = s.key.Read(row); err != nil {
		return l, err
	}
	var attempts int64
	var text, handler spanner.NullString
	var first, last spanner.NullTime
	var priority spanner.NullInt64
	columns := []any{&l.DeadAt, &l.DeliverTime, &l.Reason, &text, &attempts, &first, &last, &handler}
	if s.names.Priority != "" {
		columns = append(columns, &priority)
	}
	for i, into := range columns {
		if err := row.Column(len(s.keys)+i, into); err != nil {
			return l, err
		}
	}
	l.Error, l.Attempts, l.Handler = text.StringVal, int(attempts), handler.StringVal
	l.First, l.Last = first.Time, last.Time
	l.Priority = int(priority.Int64)
	return l, nil
}

// explain adds what helps when the table is not there.
func (s *Store) explain(err error) error {
	switch spanner.ErrCode(err) {
	case codes.NotFound, codes.InvalidArgument:
		if strings.Contains(err.Error(), "not found: "+s.table) {
			return fmt.Errorf("table %s is missing: create it with schema.Apply of schema.DeadLetters{Queue: ...}: %w", s.table, err)
		}
		if n := s.names.Priority; n != "" && strings.Contains(err.Error(), n) {
			return fmt.Errorf("table %s has no column %s, which keeps the priorities of the messages: ALTER TABLE %s ADD COLUMN %s INT64: %w",
				s.table, n, s.table, n, err)
		}
	}
	return err
}
