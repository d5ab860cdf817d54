package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spanqueue/spanqueue/processor"
)

// progress prints a line a second.
type progress struct {
	out    io.Writer
	result *result
	began  time.Time
	lines  int
}

func (p *progress) line(left int) {
	if time.Since(p.began) < time.Duration(p.lines+1)*time.Second {
		return
	}
	p.lines = int(time.Since(p.began) / time.Second)
	r := p.result
	f := r.crew.figures()
	fmt.Fprintf(p.out, "%4ds  sent %6d  in the queues %3d  deliveries %6d  kills %3d  frozen %3d  paused %2d  aborts %4d  answers lost %4d  cuts %3d\n",
		p.lines, r.producers.count(), left, f.Received, r.chaos.kills.Load()+r.chaos.idleKills.Load(), r.chaos.freezes.Load(),
		r.chaos.pauses.Load(), applied(r.faults.aborts), applied(r.faults.answers), applied(r.faults.cuts))
}

// report prints how the run ended, and returns the exit code.
func (r *result) report(out io.Writer) int {
	messages := r.producers.count()
	f := r.figures
	outcome := func(o processor.Outcome) int64 { return f.Outcomes[o.String()] }
	duplicates := outcome(processor.Duplicate) + outcome(processor.SettledElsewhere)
	perMessage := func(n int64) float64 { return float64(n) / float64(max(messages, 1)) }
	fmt.Fprintf(out, "\nin %v, with %s, %d workers and seed %d, there were\n", r.took.Round(100*time.Millisecond), r.options.setting, r.options.workers, r.options.seed)
	for _, line := range []line{
		{int64(messages), "messages", fmt.Sprintf("%d in the queues at most", r.most)},
		{f.Received, "deliveries", fmt.Sprintf("%.3f a message", perMessage(f.Received))},
		{duplicates, "duplicates suppressed", fmt.Sprintf("%.0f a million messages", 1e6*perMessage(duplicates))},
		{r.chaos.kills.Load(), "kills", fmt.Sprintf("of workers with a message in a handler or a commit under way (%d); %d more of idle ones", r.chaos.inCommit.Load(), r.chaos.idleKills.Load())},
		{r.chaos.freezes.Load(), "freezes", fmt.Sprintf("of workers, for up to %v; a lease is %v", frozenMax, leaseLength)},
		{r.chaos.pauses.Load(), "pauses", fmt.Sprintf("of the emulator, for up to %v", pausedMax)},
		r.aborts(),
		{int64(applied(r.faults.answers)), "answers lost or late", "of commits, acknowledgements, renewals, probes and sends"},
		{int64(applied(r.faults.cuts)), "cuts", "of connections and streams"},
		{f.Unknown - outcome(processor.Unresolved), "unknown commits settled", fmt.Sprintf("of %d", f.Unknown)},
		{r.producers.again.Load(), "sends tried again", fmt.Sprintf("%d had been sent by an earlier try", r.producers.settled.Load())},
		{f.OwnFailures, "failures", fmt.Sprintf("of the handlers' own; %d messages were sent again for later", outcome(processor.Retried))},
	} {
		fmt.Fprintf(out, "  %7d  %-24s %s\n", line.n, line.name, line.meaning)
	}
	r.recoveries.report(out)
	fmt.Fprintf(out, "%.2f RPCs a message, %.2f of them commits; besides them %.3f for receiving, %.3f renewals, %.3f for sessions, %.3f for the time\n",
		perMessage(f.rpcs(rpcWork, rpcCommit)), perMessage(f.rpcs(rpcCommit)), perMessage(f.rpcs(rpcReceive)),
		perMessage(f.rpcs(rpcRenew)), perMessage(f.rpcs(rpcSession)), perMessage(f.rpcs(rpcClock)))

	const shown = 20
	wrong := slices.Sorted(slices.Values(r.verdict.wrong))
	for _, line := range wrong[:min(len(wrong), shown)] {
		fmt.Fprintln(out, "WRONG:", line)
	}
	if len(wrong) > shown {
		fmt.Fprintf(out, "WRONG: and %d more\n", len(wrong)-shown)
	}
	fmt.Fprintf(out, "%d lost, %d twice\n", r.verdict.lost, r.verdict.twice)
	if !r.verdict.good() {
		return exitBad
	}
	return exitGood
}

// line is a figure of the report.
type line struct {
	n       int64
	name    string
	meaning string
}

// aborts are the front's choice, or the bare emulator's, which knows one transaction at a time.
func (r *result) aborts() line {
	if r.options.bare() {
		return line{r.figures.Aborts, "aborts", "of workers' transactions that met another: the emulator bears one at a time"}
	}
	return line{int64(applied(r.faults.aborts)), "aborts", fmt.Sprintf("by the database's choice; workers ran transactions again %d times", r.figures.Aborts)}
}

// report prints what the kills have led to.
func (r *recoveries) report(out io.Writer) {
	all := r.of()
	median, longest := all.settled()
	fmt.Fprintf(out, "%d messages were left by kills to other workers, and settled after %.1f s (median), %.1f s (longest):\n", len(all), median.Seconds(), longest.Seconds())
	calm := r.of(undisturbed)
	median, longest = calm.settled()
	came, latest := calm.came()
	fmt.Fprintf(out, "  %7d  met no more trouble: with another worker after %.1f s, %.1f s (a lease is %v), settled after %.1f s, %.1f s\n",
		len(calm), came.Seconds(), latest.Seconds(), leaseLength, median.Seconds(), longest.Seconds())
	for _, kind := range []struct {
		met  fate
		text string
	}{
		{disturbed, "met the next kill, a freeze or a pause as well"},
		{putOff, fmt.Sprintf("were to come later: deferred by their handlers for %v", callTimeout)},
	} {
		these := r.of(kind.met)
		median, longest = these.settled()
		fmt.Fprintf(out, "  %7d  %s: settled after %.1f s, %.1f s\n", len(these), kind.text, median.Seconds(), longest.Seconds())
	}
}
