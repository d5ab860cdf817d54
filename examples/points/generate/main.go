// Command generate writes the two data files of the points example into the working folder: accounts.csv and orders.csv.
// It draws from a fixed seed, so that it writes the same files every time.
package main

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"
)

const (
	accounts = 50
	orders   = 1000
)

func main() {
	draw := rand.New(rand.NewPCG(2026, 50))
	write("accounts.csv", accountLines(draw))
	write("orders.csv", orderLines(draw))
}

func write(name string, lines []string) {
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		log.Fatal(err)
	}
}

func accountLines(draw *rand.Rand) []string {
	lines := []string{"account,opening balance"}
	for i := range accounts {
		lines = append(lines, fmt.Sprintf("%s,%d", account(i+1), 100+draw.IntN(4900)))
	}
	return lines
}

func account(n int) string { return fmt.Sprintf("A%02d", n) }

// special are the orders that are there to be difficult, by their number. They are among the first, so that a short run
// meets them too.
var special = map[int][]string{
	12: {"# two orders of one account with equal amounts: both count",
		"A07,O-0012,120,"},
	13: {"A07,O-0013,120,"},
	20: {"# one order id in two accounts: both count",
		"A03,O-0020,75,"},
	21: {"A11,O-0020,90,"},
	30: {"# no account: refused",
		",O-0030,50,"},
	40: {"# no order id, which is the key: refused",
		"A09,,50,"},
	50: {"# points that are not positive: refused",
		"A14,O-0050,-40,"},
	60: {"# more than the balance can hold: refused, and the balance stays",
		fmt.Sprintf("A50,O-0060,%d,", math.MaxInt64)},
	5: {"A21,O-0005,240,"},
	80: {"# order O-0005 once more, with another amount: refused, and the balance stays",
		"A21,O-0005,999,"},
}

func orderLines(draw *rand.Rand) []string {
	lines := []string{"account,order,purchase points,campaign points"}
	for n := 1; n <= orders; n++ {
		if own, ok := special[n]; ok {
			lines = append(lines, own...)
			continue
		}
		campaign := ""
		if draw.IntN(10) == 0 { // such an order carries two grants
			campaign = fmt.Sprint(25 * (1 + draw.IntN(4)))
		}
		lines = append(lines, fmt.Sprintf("%s,O-%04d,%d,%s", account(1+draw.IntN(accounts)), n, 10+draw.IntN(490), campaign))
	}
	return lines
}
