package main

import (
	"strings"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

func TestEveryOrderGoesItsWayOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &out)
	t.Log(out.String())
	require.NoError(t, err)
	text := out.String()
	require.Contains(t, text, "40 orders are placed\n39 have gone all the way; in the dead letters there is\n"+
		"  reserve of order o07, after 3 attempts: there is no teapot in the catalogue\n")
	require.Contains(t, text, "1 dead letter is redriven\n40 have gone all the way\n")
	require.Regexp(t, `aborted [1-9]\d* commits and lost the answers to [1-9]`, text)
}

// Whatever is wrong must be seen.
func TestJudge(t *testing.T) {
	t.Parallel()
	orders := map[string]order{"o1": {"ada", "cup", 20}, "o2": {"bob", "cup", 20}, "o3": {"bob", "teapot", 1}}
	good := func() ledger {
		return ledger{
			status: map[string]string{"o1": confirmed, "o2": soldOut, "o3": confirmed},
			mails:  map[string][]string{"o1": {"yes"}, "o2": {"no"}, "o3": {"yes"}},
			stock:  map[string]int64{"cup": 10, "plate": 100, "teapot": 4},
			owed:   map[string]int64{"ada": 8000, "bob": 3000},
		}
	}
	require.NoError(t, good().judge(orders))
	for _, tt := range []struct {
		name, want string
		spoil      func(ledger)
	}{
		{"reserved twice", "stock of cup: -10, must be 10", func(l ledger) { l.stock["cup"] = -10 }},
		{"charged twice", "ada owes 16000, must be 8000", func(l ledger) { l.owed["ada"] = 16000 }},
		{"told twice", "order o2: 2 mails", func(l ledger) { l.mails["o2"] = []string{"no", "no"} }},
		{"not told", "order o2: 0 mails", func(l ledger) { delete(l.mails, "o2") }},
		{"left half way", `order o3: its status is "placed"`, func(l ledger) { l.status["o3"] = placed }},
		{"lost", `order o3: its status is ""`, func(l ledger) { delete(l.status, "o3") }},
		{"refused without need", "order o3: sold out, and there are 4", func(l ledger) { l.status["o3"] = soldOut }},
		{"an order too many", "4 orders, must be 3", func(l ledger) { l.status["o4"] = soldOut }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := good()
			tt.spoil(l)
			require.ErrorContains(t, l.judge(orders), tt.want)
		})
	}
}
