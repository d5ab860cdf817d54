package main

import "fmt"

// tally compares what there is of one kind with the bookings.
type tally struct {
	name          string
	once, missing int
	twice         int // beyond the first of each trip
}

func tallyOf(name string, bookings []*booking, found map[string]int) tally {
	t := tally{name: name}
	for _, b := range bookings {
		switch n := found[b.Trip]; n {
		case 0:
			t.missing++
		case 1:
			t.once++
		default:
			t.twice += n - 1
		}
	}
	return t
}

func (t tally) good() bool { return t.missing == 0 && t.twice == 0 }

// verdict is what there is against what was booked.
type verdict struct {
	tallies []tally
	wrong   []string
}

func judge(bookings []*booking, l ledger) verdict {
	v := verdict{tallies: []tally{
		tallyOf("rides", bookings, l.rides),
		tallyOf("charges", bookings, l.charges),
		tallyOf("receipts", bookings, l.receipts),
		tallyOf("distinct mails", bookings, l.mails),
		tallyOf("mails noted", bookings, l.noted),
	}}
	for _, b := range bookings {
		if got := l.cents[b.Trip]; l.charges[b.Trip] == 1 && got != b.Cents {
			v.add("%s: %d cents were charged, %d were agreed", b.Trip, got, b.Cents)
		}
	}
	if l.inconsistent > 0 {
		v.add("%d rides have no receipt of their charge", l.inconsistent)
	}
	if l.deadLetters > 0 {
		v.add("%d mails were given up", l.deadLetters)
	}
	for name, found := range map[string]map[string]int{"rides": l.rides, "charges": l.charges, "mails": l.mails} {
		if len(found) > len(bookings) {
			v.add("there are %s of %d trips, and %d were booked", name, len(found), len(bookings))
		}
	}
	return v
}

func (v *verdict) add(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

func (v verdict) good() bool {
	for _, t := range v.tallies {
		if !t.good() {
			return false
		}
	}
	return len(v.wrong) == 0
}

func (v verdict) twice(name string) int {
	for _, t := range v.tallies {
		if t.name == name {
			return t.twice
		}
	}
	return 0
}
