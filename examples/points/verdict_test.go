package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFileHasTheHardCases(t *testing.T) {
	t.Parallel()
	for _, orders := range []int{200, 1000} {
		d, err := readData(orders)
		require.NoError(t, err)
		require.Equal(t, orders, d.orders)
		require.Len(t, d.opening, 50)
		for account, balance := range d.opening {
			require.Positive(t, balance, "%s: the amount that overflows must do so whatever comes first", account)
		}

		e := expect(d)
		require.Equal(t, map[string]int{
			"no account":                       1,
			"no order id":                      1,
			"points not positive":              1,
			"more than the balance can hold":   1,
			"other points than the first time": 1,
		}, e.refused)
		require.Len(t, e.points, len(d.grants)-5)
		require.NotContains(t, slices.Collect(maps.Values(e.points)), int64(math.MaxInt64))

		twoGrants, inTwoAccounts, equalAmounts := 0, 0, 0
		for o, points := range e.points {
			if _, also := e.points[operation{o.Account, o.Order, campaign}]; also && o.Kind == purchase {
				twoGrants++
			}
			for other, otherPoints := range e.points {
				switch {
				case o == other || o.Kind != other.Kind:
				case o.Order == other.Order:
					inTwoAccounts++
				case o.Account == other.Account && points == otherPoints:
					equalAmounts++
				}
			}
		}
		require.Positive(t, twoGrants)
		require.Positive(t, inTwoAccounts)
		require.Positive(t, equalAmounts)
	}
}

func TestAThirdIsSentTwice(t *testing.T) {
	t.Parallel()
	d, err := readData(1000)
	require.NoError(t, err)
	e := expect(d)
	p := newProducer(&database{}, d, e, 1)
	require.InDelta(t, len(e.points)/3, len(p.noAnswer), 50)
	hurried := 0
	for o, hurry := range p.hurried {
		require.True(t, p.noAnswer[o])
		if hurry {
			hurried++
		}
	}
	require.Positive(t, hurried)
	require.Less(t, hurried, len(p.noAnswer)/5)
	require.Equal(t, p.noAnswer, newProducer(&database{}, d, e, 1).noAnswer)
	require.NotEqual(t, p.noAnswer, newProducer(&database{}, d, e, 2).noAnswer)
}

// Whatever is wrong in the database must be seen.
func TestJudge(t *testing.T) {
	t.Parallel()
	once := operation{"A1", "O1", purchase}  // sent once
	again := operation{"A2", "O2", purchase} // sent twice
	bad := operation{"A1", "O3", purchase}   // to be refused
	e := expectation{
		points:   map[operation]int64{once: 10, again: 20},
		balances: map[string]int64{"A1": 110, "A2": 120},
		refused:  map[string]int{"points not positive": 1},
	}
	p := &producer{
		sent:  map[operation]int{once: 1, again: 2, bad: 1},
		first: map[operation]receipt{again: {20, 120}},
	}
	grantOf := func(o operation, points, balance int64) answer {
		return answer{operation: o, Points: points, Outcome: granted, Balance: balance}
	}
	good := func() ledger {
		return ledger{
			balances: map[string]int64{"A1": 110, "A2": 120},
			receipts: map[operation]receipt{once: {10, 110}, again: {20, 120}},
			answers: map[operation][]answer{
				once: {grantOf(once, 10, 110)},
				again: {
					grantOf(again, 20, 120),
					{operation: again, Points: 20, Outcome: replayed, Balance: 120},
				},
				bad: {{operation: bad, Points: -1, Outcome: refused, Reason: "points not positive"}},
			},
		}
	}
	require.Equal(t, verdict{}, judge(e, good(), p))

	for _, tt := range []struct {
		name                       string
		spoil                      func(*ledger)
		lost, twice, twiceSentOnce int
		wrong                      string
	}{
		{name: "a grant is missing", spoil: func(l *ledger) { delete(l.answers, once) }, lost: 1},
		{name: "sent once, granted twice", twice: 1, twiceSentOnce: 1,
			spoil: func(l *ledger) { l.answers[once] = append(l.answers[once], grantOf(once, 10, 120)) }},
		{name: "sent twice, granted three times", twice: 2,
			spoil: func(l *ledger) {
				l.answers[again] = append(l.answers[again], grantOf(again, 20, 140), grantOf(again, 20, 160))
			}},
		{name: "granted the wrong amount", wrong: "11 points were granted, the file says 10",
			spoil: func(l *ledger) { l.answers[once][0].Points = 11 }},
		{name: "granted what must be refused", wrong: "was granted, and must be refused",
			spoil: func(l *ledger) { l.answers[bad] = append(l.answers[bad], grantOf(bad, 5, 115)) }},
		{name: "a balance is off", wrong: "account A2: the balance is 140, the file says 120",
			spoil: func(l *ledger) { l.balances["A2"] = 140 }},
		{name: "an account too many", wrong: "there are 3 accounts, the file has 2",
			spoil: func(l *ledger) { l.balances["A3"] = 0 }},
		{name: "a receipt is missing", wrong: "the receipt says 0 points, the file says 10",
			spoil: func(l *ledger) { delete(l.receipts, once) }},
		{name: "a receipt too many", wrong: "there are 3 receipts for 2 operations",
			spoil: func(l *ledger) { l.receipts[bad] = receipt{5, 115} }},
		{name: "the second message was not answered", wrong: "was answered from the receipt 0 times",
			spoil: func(l *ledger) { l.answers[again] = l.answers[again][:1] }},
		{name: "the second message was answered otherwise", wrong: "the second answer was {Points:20 Balance:140}",
			spoil: func(l *ledger) { l.answers[again][1].Balance = 140 }},
		{name: "the second message changed the receipt", wrong: "and said {Points:20 Balance:120} before the second message",
			spoil: func(l *ledger) {
				l.answers[again][1].Balance = 140
				l.receipts[again] = receipt{20, 140}
			}},
		{name: "refused twice", wrong: `refused for "points not positive": 2, the file says 1`,
			spoil: func(l *ledger) { l.answers[bad] = append(l.answers[bad], l.answers[bad][0]) }},
		{name: "refused for another reason", wrong: `refused for "no such account": 1, the file says 0`,
			spoil: func(l *ledger) { l.answers[bad][0].Reason = "no such account" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := good()
			tt.spoil(&l)
			v := judge(e, l, p)
			require.False(t, v.good())
			require.Equal(t, tt.lost, v.lost)
			require.Equal(t, tt.twice, v.twice)
			require.Equal(t, tt.twiceSentOnce, v.twiceSentOnce)
			if tt.wrong != "" {
				require.Contains(t, fmt.Sprint(v.wrong), tt.wrong)
			}
		})
	}
}
