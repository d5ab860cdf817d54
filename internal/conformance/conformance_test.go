package conformance_test

import (
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

// How long leases last. The service's last 10 s, whatever is asked for.
const (
	long  = 10 * time.Second // they do not end while a message is handled, on a slow machine either
	fair  = 3 * time.Second  // they do not end while they are renewed
	short = 2 * time.Second  // the scenario waits for their end
)

// scenario is one promise.
type scenario struct {
	name  string
	lease time.Duration
	needs []need
	run   func(*house)
}

var scenarios = []scenario{
	// Handlers.
	{"every message takes effect once", long, nil, everyMessageOnce},
	{"a batch takes effect once for each", long, []need{googles}, batchOnce},
	{"poison stands alone in a batch", long, []need{undone, googles}, batchPoison},
	{"a call is settled once", fair, []need{googles}, callOnce},
	{"a deferral keeps others away", fair, []need{googles}, deferral},
	{"a checkpoint moves the payload forward", long, []need{googles}, checkpoint},
	{"a failed handler leaves nothing", long, []need{undone}, failedLeavesNothing},
	// Fates.
	{"failures are retried and then dead-lettered", long, nil, failuresAreCounted},
	{"dead letters are redriven and discarded", long, []need{letters, googles}, deadLetters},
	{"F16: later, three times", long, nil, laterThreeTimes},
	{"F18: deferrals are not attempts", long, nil, deferralsAreNoAttempts},
	{"F18: a handler that kills its process", short, nil, killers},
	{"a snooze is no failure, and never early", long, nil, snoozeIsNoFailure},
	// Stops.
	{"a stop leaves the rest to others", short, nil, stopLeavesTheRest},
	{"F13: a stop does not kill finished work", long, nil, stopAsHandlersReturn},
	{"an interrupted handler uses no attempt", short, []need{undone}, interruptedUsesNoAttempt},
	// Holders.
	{"F01: a late holder's every write misses", short, []need{googles}, lateHolderMisses},
	{"F09: messages that wait are kept or let go", fair, []need{googles}, waitingIsKept},
	{"a message comes when it is due, and again when its lease has ended", short, []need{googles}, comesAndComesAgain},
	{"renewals", long, []need{googles}, renewals},
	{"a lease that is given back", long, []need{release, googles}, givenBack},
	{"a resend is another delivery", long, []need{googles}, resendIsAnother},
	{"the missing of a batch are named", long, []need{googles}, missingAreNamed},
	{"transactions of the caller's", long, []need{undone, googles}, callersTransactions},
	// Sends and looks.
	{"sends", long, []need{googles}, sends},
	{"sends in a transaction", long, []need{undone, googles}, sendsInTransactions},
	{"stats, peek and purge", long, []need{googles}, looks},
	// Faults.
	{"F01: two owners both finish one message", short, []need{undone, frontFault}, twoOwners},
	{"F16: later, whatever becomes of the commit", long, []need{undone, frontFault}, laterUnderFaults},
	{"F18: aborts are not attempts", long, []need{undone, frontFault}, abortsAreNoAttempts},
	{"lost answers of commits", long, []need{undone, frontFault}, lostAnswers},
}

// atOnce is how many scenarios of a kind run at the same time: they mostly wait.
const atOnce = 8

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			has := abilities(t, k)
			require.Empty(t, differences(has, documented[k.name]))
			var running errgroup.Group
			running.SetLimit(atOnce)
			for _, s := range scenarios {
				running.Go(func() error {
					t.Run(s.name, func(t *testing.T) {
						for _, n := range s.needs {
							if !has[n] {
								t.Skipf("it needs %s, and %s", n, documented[k.name][n])
							}
						}
						s.run(k.make(t, s.lease))
					})
					return nil
				})
			}
			_ = running.Wait()
		})
	}
}
