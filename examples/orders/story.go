package main

import (
	"context"
	"fmt"
	"io"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"
)

// item is what there is to buy.
type item struct{ cents, inStock int64 }

// The catalogue, and what is ordered. There are not enough cups, and no teapots at all before somebody adds them.
var (
	catalogue = map[string]item{"cup": {400, 30}, "plate": {700, 100}}
	forgotten = map[string]item{"teapot": {3000, 5}}
	customers = []string{"ada", "bob", "eve"}
)

// wanted are the orders by their ids. Their counts and customers vary, one of them is for a teapot.
func wanted() map[string]order {
	orders := map[string]order{}
	for n := range 40 {
		o := order{Customer: customers[n%3], Item: "cup", Count: int64(n%4 + 1)}
		switch {
		case n == 7:
			o.Item = "teapot"
		case n%2 == 0:
			o.Item = "plate"
		}
		orders[fmt.Sprintf("o%02d", n)] = o
	}
	return orders
}

// faults is what the database does to the worker: it aborts commits, and it loses the answers to others.
type faults struct{ aborted, lost, reRun *fault.Handle }

func misbehave(set *fault.Set) faults {
	onCommit := func(name string, do fault.Action) *fault.Handle {
		return set.Add(fault.Rule{Name: name, Method: "Commit", Tag: "queue=" + steps.Name, Probability: 0.1, Seed: 1, Do: do})
	}
	return faults{
		aborted: onCommit("aborted", fault.Abort()),
		lost:    onCommit("lost", fault.After(codes.DeadlineExceeded, "the answer was lost")),
		// With this answer Google's client runs the function again by itself, although the commit has landed.
		reRun: onCommit("re-run", fault.After(codes.Internal, "stream terminated by RST_STREAM")),
	}
}

func (s shop) story(ctx context.Context, f faults, out io.Writer) error {
	orders := wanted()
	for id, o := range orders {
		if err := s.place(ctx, id, o); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d orders are placed\n", len(orders))

	stop, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	dead, err := s.untilDone(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d have gone all the way; in the dead letters there is\n", len(orders)-len(dead))
	for _, l := range dead {
		fmt.Fprintf(out, "  %s of order %s, after %d attempts: %s\n", l.Key[1], l.Key[0], l.Attempts, l.Error)
	}

	if err := s.add(ctx, forgotten); err != nil {
		return err
	}
	redriven, err := s.steps.DeadLetters().RedriveAll(ctx, queue.DeadLetterFilter{Error: "teapot"}, queue.BulkOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the teapot is added to the catalogue; %d dead letter is redriven\n", redriven.Settled)
	if dead, err = s.untilDone(ctx); err != nil {
		return err
	}
	figures, err := stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d have gone all the way\n", len(orders)-len(dead))
	fmt.Fprintf(out, "meanwhile the database aborted %d commits and lost the answers to %d; %d transactions ran for %d deliveries\n",
		f.aborted.Applied(), f.lost.Applied()+f.reRun.Applied(), figures.Runs, figures.Receiver.Received)

	l, err := s.readLedger(ctx)
	if err != nil {
		return err
	}
	l.print(out)
	return l.judge(orders)
}

// fill sets up the catalogue and the customers.
func (s shop) fill(ctx context.Context) error {
	var rows []*spanner.Mutation
	for _, name := range customers {
		rows = append(rows, spanner.Insert("Customers", []string{"Customer", "Owed"}, []any{name, 0}))
	}
	if _, err := s.client.Apply(ctx, rows); err != nil {
		return err
	}
	return s.add(ctx, catalogue)
}

func (s shop) add(ctx context.Context, items map[string]item) error {
	var rows []*spanner.Mutation
	for name, i := range items {
		rows = append(rows, spanner.Insert("Stock", []string{"Item", "Cents", "InStock"}, []any{name, i.cents, i.inStock}))
	}
	_, err := s.client.Apply(ctx, rows)
	return err
}
