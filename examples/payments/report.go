package main

import (
	"fmt"
	"io"
	"time"
)

// mostCallsWhileAway bounds the calls of an outage: every click that is under
// way comes at once, and then no sooner than a second after its last answer.
func (r *result) mostCallsWhileAway() int {
	const clicks = 2 * customersAtOnce
	return clicks * (1 + int(r.outage/time.Second))
}

// report prints how the run ended, and returns the exit code.
func (r *result) report(out io.Writer) int {
	r.printTallies(out)
	a, g := r.app, r.gateway
	counts := []struct {
		n       int
		name    string
		meaning string
	}{
		{a.requests, "requests", fmt.Sprintf("of %d bookings", len(r.bookings))},
		{a.doubleClicks, "double clicks", "two requests at the same time"},
		{a.timeouts, "requests unanswered", "the app had gone before the answer came"},
		{a.retries, "retries", "after no answer, 409 or 503"},
		{a.fresh, "first answers", "201"},
		{a.replays, "replays", "201 again, from the record"},
		{a.conflicts, "conflicts", "409: another attempt was at work"},
		{a.failures, "failures", "503: the gateway, mostly"},
		{g.Calls - r.charges, "calls beyond charges", fmt.Sprintf("%d calls of the gateway made %d charges", g.Calls, r.charges)},
		{g.Before, "failed before", "the gateway answered 503 and had not charged"},
		{g.After, "failed after", "it answered 500 and had charged"},
		{g.Lost, "answers lost", "it charged and closed the connection"},
		{g.Repeated, "calls repeated", "with a key that it knew: answered with the first charge"},
		{len(g.Away), "calls while away", fmt.Sprintf("in %v; at most %d may come", r.outage.Round(100*time.Millisecond), r.mostCallsWhileAway())},
		{r.deliveries, "mails delivered", "as often as they came"},
		{r.mails, "distinct mails", "by message key"},
		{r.aborts, "aborts", "of transactions, by the database"},
		{r.lost, "commits unanswered", "saved or not"},
	}
	fmt.Fprintf(out, "\nin %v there were\n", r.took.Round(100*time.Millisecond))
	for _, c := range counts {
		fmt.Fprintf(out, "  %6d  %-20s  %s\n", c.n, c.name, c.meaning)
		if c.n <= 0 {
			r.verdict.add("there were no %s: this run has proved nothing about them", c.name)
		}
	}
	if len(g.Away) > r.mostCallsWhileAway() {
		r.verdict.add("%d calls came while the gateway was away, more than %d: a storm", len(g.Away), r.mostCallsWhileAway())
	}
	fmt.Fprintln(out)
	for _, line := range r.verdict.wrong {
		fmt.Fprintln(out, "WRONG:", line)
	}
	if !r.verdict.good() {
		fmt.Fprintln(out, "this is not one of each")
		return exitBad
	}
	fmt.Fprintf(out, "%d rides, %d charges, %d mails: one each\n", len(r.bookings), r.charges, r.mails)
	return exitGood
}

func (r *result) printTallies(out io.Writer) {
	fmt.Fprintf(out, "\n  %-16s %8s %8s %8s %8s\n", "", "booked", "once", "missing", "too many")
	for _, t := range r.verdict.tallies {
		fmt.Fprintf(out, "  %-16s %8d %8d %8d %8d\n", t.name, len(r.bookings), t.once, t.missing, t.twice)
	}
}

// reportUnprotected prints what went wrong. That something did is what the run
// is for.
func (r *result) reportUnprotected(out io.Writer) int {
	r.printTallies(out)
	double := r.verdict.twice("charges")
	fmt.Fprintf(out, "\nin %v, without records and without keys: %d double charges\n", r.took.Round(100*time.Millisecond), double)
	if double == 0 {
		fmt.Fprintln(out, "nothing was charged twice: the faults of this run have missed")
		return exitBad
	}
	return exitGood
}
