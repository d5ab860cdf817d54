package main

import "math"

// expectation is what must stand in the database when all is done. It is computed from the files alone, with no line of
// the code that it judges.
type expectation struct {
	points   map[operation]int64 // of each operation that must be granted, once
	balances map[string]int64    // by account
	refused  map[string]int      // by reason
}

func expect(d data) expectation {
	e := expectation{
		points:   make(map[operation]int64),
		balances: make(map[string]int64),
		refused:  make(map[string]int),
	}
	for account, balance := range d.opening {
		e.balances[account] = balance
	}
	for _, g := range d.grants {
		_, again := e.points[g.operation]
		switch {
		case g.Account == "":
			e.refused["no account"]++
		case g.Order == "":
			e.refused["no order id"]++
		case g.Points <= 0:
			e.refused["points not positive"]++
		case again: // the file repeats an order only to ask for another amount
			e.refused["other points than the first time"]++
		case e.balances[g.Account] > math.MaxInt64-g.Points:
			// The order of the messages does not matter: this amount is too much for any balance above zero.
			e.refused["more than the balance can hold"]++
		default:
			e.points[g.operation] = g.Points
			e.balances[g.Account] += g.Points
		}
	}
	return e
}
