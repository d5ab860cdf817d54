package queuesql

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
)

// Client returns the client of Google's that db works through, so that a program opens its queues without a second one:
//
//	client, release, err := queuesql.Client(ctx, db)
//	...
//	defer release()
//	q, err := queue.New(client, orders)
//
// The driver closes its client with the last of its connections, so Client keeps one of db's connections open until release
// is called: a limit by SetMaxOpenConns must leave room for it. Release it before db.Close, and do not close the client. db
// must be opened with the driver go-sql-spanner; any other one is refused.
func Client(ctx context.Context, db *sql.DB) (client *spanner.Client, release func() error, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("queuesql: take a connection: %w", err)
	}
	err = conn.Raw(func(c any) error {
		s, ok := c.(spannerdriver.SpannerConn)
		if !ok {
			return fmt.Errorf("queuesql: the driver's connection is a %T, want one of github.com/googleapis/go-sql-spanner", c)
		}
		client, err = s.UnderlyingClient()
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return client, sync.OnceValue(conn.Close), nil
}
