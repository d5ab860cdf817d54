// Command sql places orders and grants points for them by database/sql: a message is sent in the transaction of its order,
// and handled in the transaction that acknowledges it. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"google.golang.org/grpc/codes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := createDatabase(ctx, e); err != nil {
		return err
	}
	db, err := openDatabase(e.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, release, err := queuesql.Client(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	q, err := queue.New(client, placed)
	if err != nil {
		return err
	}

	s := shop{db: db, queue: q}
	for _, o := range []order{
		{id: "o1", customer: "ada", cents: 1200},
		{id: "o2", customer: "ada", cents: 800},
		{id: "o3", customer: "bob", cents: 9900, refused: true},
		{id: "o4", customer: "bob", cents: 500},
	} {
		if err := s.place(ctx, o); err != nil && !errors.Is(err, errRefused) {
			return err
		} else if err != nil {
			fmt.Fprintf(out, "order %s: rolled back, and its message with it: %v\n", o.id, err)
			continue
		}
		fmt.Fprintf(out, "order %s: placed, %d cents by %s\n", o.id, o.cents, o.customer)
	}

	// What a database does to a worker some day: a commit is aborted, and the answer to another one is lost.
	aborted := e.Front().Faults().Add(fault.Rule{Method: "Commit", Tag: "queue=" + placed.Name, Nth: 1, Do: fault.Abort()})
	lost := e.Front().Faults().Add(fault.Rule{Method: "Commit", Tag: "queue=" + placed.Name, Nth: 2,
		Do: fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")})
	calls, err := s.workUntilDone(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the worker was called %d times for 3 messages; commits aborted: %d, answers lost: %d\n",
		calls, aborted.Applied(), lost.Applied())
	return s.report(ctx, out)
}

// report prints the points, which were granted once for each order.
func (s shop) report(ctx context.Context, out io.Writer) error {
	rows, err := s.db.QueryContext(ctx, "SELECT Customer, Points FROM Customers ORDER BY Customer")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var customer string
		var points int64
		if err := rows.Scan(&customer, &points); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s has %d points\n", customer, points)
	}
	return errors.Join(rows.Err(), s.nothingLeft(ctx, out))
}

func (s shop) nothingLeft(ctx context.Context, out io.Writer) error {
	var left int64
	err := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM OrdersPlaced").Scan(&left)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "messages left in the queue: %d\n", left)
	return nil
}
