package conformance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// inSpanner is what all kinds but memory have in common.
func inSpanner(t *testing.T, d schema.Queue, table bool, length time.Duration, connect func() *spanner.Client) *house {
	t.Helper()
	client := connect()
	effects := d.Name + "Effects"
	h := &house{
		t: t, length: length, name: d.Name,
		connect: connect,
		open: func(opts ...queue.Option) *queue.Queue {
			var q *queue.Queue
			var err error
			opts = append([]queue.Option{queue.LeaseLength(length)}, opts...)
			if table {
				q, err = queue.NewTable(connect(), schema.QueueTable{Queue: d}, append(opts, queue.PollInterval(50*time.Millisecond))...)
			} else {
				q, err = queue.New(connect(), d, opts...)
			}
			require.NoError(t, err)
			return q
		},
		effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			n, err := number(ctx, tx, effects, m.Key)
			if err != nil {
				return err
			}
			return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate(effects, []string{"Id", "N"}, []any{m.Key[0], n + 1})})
		},
		effects: func(id string) int64 {
			n, err := number(t.Context(), client.Single(), effects, spanner.Key{id})
			require.NoError(t, err)
			return n
		},
		letters: func() int {
			var n int64
			stmt := spanner.NewStatement("SELECT COUNT(*) FROM " + schema.DeadLetters{Queue: d}.TableName())
			require.NoError(t, client.Single().Query(t.Context(), stmt).Do(func(r *spanner.Row) error { return r.Columns(&n) }))
			return int(n)
		},
	}
	h.tx = h.googleTx
	return h
}

// number reads a message's number of effects.
func number(ctx context.Context, tx interface {
	ReadRow(context.Context, string, spanner.Key, []string) (*spanner.Row, error)
}, effects string, key spanner.Key) (n int64, err error) {
	row, err := tx.ReadRow(ctx, effects, key, []string{"N"})
	if errors.Is(err, spanner.ErrRowNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return n, row.Columns(&n)
}

// byDatabaseSQL has the handlers of queuesql; all else is as through the front.
func (p place) byDatabaseSQL() *house {
	h := p.throughFront()
	h.effect = nil
	name := strings.Split(p.db.Name, "/")
	connector, err := spannerdriver.CreateConnector(spannerdriver.ConnectorConfig{
		Host: p.db.Endpoint(), Project: name[1], Instance: name[3], Database: name[5],
		Params: map[string]string{"useplaintext": "true"},
	})
	require.NoError(p.t, err)
	db := sql.OpenDB(connector)
	p.t.Cleanup(func() { require.NoError(p.t, db.Close()) })
	h.tx = func(f func(context.Context, *queue.Message, func() error) error) processor.Handler {
		return queuesql.Handler(db, func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
			return f(ctx, m, func() error { return sqlEffect(ctx, tx, h.name+"Effects", m) })
		})
	}
	return h
}

func sqlEffect(ctx context.Context, tx *sql.Tx, effects string, m *queue.Message) error {
	var n int64
	err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT N FROM %s WHERE Id = @id", effects), sql.Named("id", m.Key[0])).Scan(&n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT OR UPDATE INTO %s (Id, N) VALUES (@id, @n)", effects),
		sql.Named("id", m.Key[0]), sql.Named("n", n+1))
	return err
}
