package main

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The check sees whatever is not one of each.
func TestVerdictSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	bookings := []*booking{{order: order{Trip: "a", Cents: 100}}, {order: order{Trip: "b", Cents: 200}}}
	good := func() ledger {
		one := map[string]int{"a": 1, "b": 1}
		return ledger{
			rides: maps.Clone(one), charges: maps.Clone(one), receipts: maps.Clone(one), mails: maps.Clone(one), noted: maps.Clone(one),
			cents: map[string]int64{"a": 100, "b": 200},
		}
	}
	require.True(t, judge(bookings, good()).good())
	for name, spoil := range map[string]func(*ledger){
		"second ride":     func(l *ledger) { l.rides["a"]++ },
		"no ride":         func(l *ledger) { delete(l.rides, "a") },
		"second charge":   func(l *ledger) { l.charges["b"]++ },
		"no charge":       func(l *ledger) { delete(l.charges, "b") },
		"another price":   func(l *ledger) { l.cents["a"] = 1 },
		"no receipt":      func(l *ledger) { delete(l.receipts, "a") },
		"second receipt":  func(l *ledger) { l.receipts["a"]++ },
		"second mail":     func(l *ledger) { l.mails["a"]++ },
		"no mail":         func(l *ledger) { delete(l.mails, "a") },
		"noted twice":     func(l *ledger) { l.noted["a"]++ },
		"unknown charge":  func(l *ledger) { l.charges["c"]++ },
		"another receipt": func(l *ledger) { l.inconsistent = 1 },
		"dead mail":       func(l *ledger) { l.deadLetters = 1 },
	} {
		l := good()
		spoil(&l)
		require.False(t, judge(bookings, l).good(), name)
	}
	l := good()
	l.charges["a"] = 3
	require.Equal(t, 2, judge(bookings, l).twice("charges"))
}

func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	b := backoff{attempts: 5, min: 100 * time.Millisecond, max: time.Second}
	random := rand.New(rand.NewPCG(1, 2))
	for n, widest := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond, 5: time.Second, 100: time.Second} {
		var low, high bool
		for range 1000 {
			d := b.delay(n, 2*time.Second, random) - 2*time.Second
			require.GreaterOrEqual(t, d, time.Duration(0), "before the service asked for it")
			require.LessOrEqual(t, d, widest)
			low, high = low || d < widest/4, high || d > widest*3/4
		}
		require.True(t, low && high, "attempt %d is not spread", n)
	}
}
