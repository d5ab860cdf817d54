package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

func printOpening(out io.Writer, o options, r *result, d *demo) {
	fmt.Fprintf(out, "%d orders of %d accounts ask for %d grants; %d must be granted and %d refused\n",
		r.data.orders, len(r.data.opening), len(r.data.grants), len(r.expected.points), len(r.data.grants)-len(r.expected.points))
	fmt.Fprintf(out, "the producer sends %d of them twice\n", len(d.producer.noAnswer))
	fmt.Fprintf(out, "emulator with front at %s, seed %d, %d workers\n", d.db.emulator.Addr(), o.seed, o.workers)
}

// report prints how the run ended, and returns the exit code.
func (r *result) report(out io.Writer) int {
	r.printBalances(out)
	r.printRefusals(out)

	messages := r.ledger.count(granted) + r.ledger.count(replayed) + r.ledger.count(refused)
	counts := []struct {
		n       int64
		name    string
		meaning string
	}{
		{r.figures.deliveries, "deliveries", fmt.Sprintf("of %d messages", messages)},
		{r.figures.deliveries - int64(messages), "redeliveries", "of what a worker had taken and not begun, or not finished"},
		{int64(r.ledger.count(replayed)), "duplicates", fmt.Sprintf("answered from the receipt; %d more met the first message in the queue", r.sent-messages)},
		{int64(r.aborts), "aborts", "of transactions, which were run again"},
		{r.figures.lost - r.figures.unsettled, "lost answers settled", fmt.Sprintf("of %d commits that got no answer", r.lostAnswers)},
	}
	fmt.Fprintf(out, "\nin %v there were\n", r.took.Round(100*time.Millisecond))
	for _, c := range counts {
		fmt.Fprintf(out, "  %6d  %-20s  %s\n", c.n, c.name, c.meaning)
		if c.n <= 0 {
			r.verdict.add("there were no %s: this run has proved nothing about them", c.name)
		}
	}
	fmt.Fprintln(out)
	for _, line := range r.verdict.wrong {
		fmt.Fprintln(out, "WRONG:", line)
	}
	fmt.Fprintf(out, "%d lost, %d twice\n", r.verdict.lost, r.verdict.twice)
	if !r.verdict.good() {
		return exitBad
	}
	return exitGood
}

// reportUnprotected prints what went wrong. That something did is what the run is for.
func (r *result) reportUnprotected(out io.Writer) int {
	r.printBalances(out)
	v := r.verdict
	fmt.Fprintf(out, "\nin %v, with a plain DELETE for an acknowledgement and without receipts, there were\n", r.took.Round(100*time.Millisecond))
	fmt.Fprintf(out, "  %6d  granted again because the producer had sent the message again\n", v.twice-v.twiceSentOnce)
	fmt.Fprintf(out, "  %6d  granted again although the message was sent once\n", v.twiceSentOnce)
	fmt.Fprintf(out, "\n%d lost, %d twice\n", v.lost, v.twice)
	if v.twice == 0 {
		fmt.Fprintln(out, "nothing was granted twice: the faults of this run have missed")
		return exitBad
	}
	return exitGood
}

const balanceColumns = 3

// printBalances prints the accounts, in columns.
func (r *result) printBalances(out io.Writer) {
	fmt.Fprintln(out, "\nbalances in the database, and as the file says")
	accounts := slices.Sorted(maps.Keys(r.expected.balances))
	rows := (len(accounts) + balanceColumns - 1) / balanceColumns
	for row := range rows {
		var line strings.Builder
		for i := row; i < len(accounts); i += rows {
			got, want := r.ledger.balances[accounts[i]], r.expected.balances[accounts[i]]
			sign := "="
			if got != want {
				sign = "≠"
			}
			fmt.Fprintf(&line, "  %s %8d %s %-8d", accounts[i], got, sign, want)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

func (r *result) printRefusals(out io.Writer) {
	refusals := refusalsByReason(r.ledger)
	fmt.Fprintln(out, "\nrefused")
	for _, reason := range slices.Sorted(maps.Keys(refusals)) {
		fmt.Fprintf(out, "  %6d  %s\n", refusals[reason], reason)
	}
}
