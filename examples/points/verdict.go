package main

import (
	"fmt"
	"slices"
)

// verdict is what the database has against the file.
type verdict struct {
	lost  int // operations that should have been granted and were not
	twice int // grants of operations that had been granted already

	twiceSentOnce int      // those of twice whose operation was sent as one message only
	wrong         []string // everything else, one line each
}

func (v verdict) good() bool { return v.lost == 0 && v.twice == 0 && len(v.wrong) == 0 }

func (v *verdict) add(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// judge compares. It looks at the grants one by one and at the balances, each from its own table: neither a balance that
// is right by chance nor a grant that missed its balance goes unseen.
func judge(e expectation, l ledger, p *producer) verdict {
	var v verdict
	v.judgeGrants(e, l, p)
	v.judgeBalances(e, l)
	v.judgeReceipts(e, l)
	v.judgeReplays(l, p)
	v.judgeRefusals(e, l)
	slices.Sort(v.wrong)
	return v
}

func (v *verdict) judgeGrants(e expectation, l ledger, p *producer) {
	for o, points := range e.points {
		grants := withOutcome(l.answers[o], granted)
		if len(grants) == 0 {
			v.lost++
			continue
		}
		v.twice += len(grants) - 1
		if p.sent[o] == 1 {
			v.twiceSentOnce += len(grants) - 1
		}
		if grants[0].Points != points {
			v.add("%v: %d points were granted, the file says %d", o, grants[0].Points, points)
		}
	}
	for o, answers := range l.answers {
		if _, good := e.points[o]; !good && len(withOutcome(answers, granted)) > 0 {
			v.add("%v: was granted, and must be refused", o)
		}
	}
}

func (v *verdict) judgeBalances(e expectation, l ledger) {
	for account, want := range e.balances {
		if got := l.balances[account]; got != want {
			v.add("account %s: the balance is %d, the file says %d", account, got, want)
		}
	}
	if len(l.balances) != len(e.balances) {
		v.add("there are %d accounts, the file has %d", len(l.balances), len(e.balances))
	}
}

func (v *verdict) judgeReceipts(e expectation, l ledger) {
	for o, points := range e.points {
		if r, ok := l.receipts[o]; !ok || r.Points != points {
			v.add("%v: the receipt says %d points, the file says %d", o, r.Points, points)
		}
	}
	if len(l.receipts) != len(e.points) {
		v.add("there are %d receipts for %d operations", len(l.receipts), len(e.points))
	}
}

// judgeReplays compares what the second message of an operation was told with the receipt, and with the receipt as it was
// before the second message was sent.
func (v *verdict) judgeReplays(l ledger, p *producer) {
	for o, answers := range l.answers {
		for _, a := range withOutcome(answers, replayed) {
			if second := (receipt{a.Points, a.Balance}); second != l.receipts[o] {
				v.add("%v: the second answer was %+v, the receipt says %+v", o, second, l.receipts[o])
			}
		}
	}
	for o, first := range p.first {
		replays := withOutcome(l.answers[o], replayed)
		if len(replays) != 1 {
			v.add("%v: was sent again once, and was answered from the receipt %d times", o, len(replays))
		}
		if l.receipts[o] != first {
			v.add("%v: the receipt says %+v, and said %+v before the second message", o, l.receipts[o], first)
		}
	}
}

func (v *verdict) judgeRefusals(e expectation, l ledger) {
	refusals := refusalsByReason(l)
	for reason, want := range e.refused {
		if refusals[reason] != want {
			v.add("refused for %q: %d, the file says %d", reason, refusals[reason], want)
		}
	}
	for reason, got := range refusals {
		if _, expected := e.refused[reason]; !expected {
			v.add("refused for %q: %d, the file says 0", reason, got)
		}
	}
}

func refusalsByReason(l ledger) map[string]int {
	reasons := make(map[string]int)
	for _, answers := range l.answers {
		for _, a := range withOutcome(answers, refused) {
			reasons[a.Reason]++
		}
	}
	return reasons
}
