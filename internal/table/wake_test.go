package table

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSleepersAreWokenByNeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := newWakeups()
		done := make(chan struct{})
		type result struct {
			woken bool
			slept time.Duration
		}
		results := make(chan result, 10)
		sleep := func(name string, pause time.Duration) *sleeper {
			s := hub.join(name)
			go func() {
				began := time.Now()
				woken := s.sleep(done, pause)
				results <- result{woken, time.Since(began)}
				s.leave()
			}()
			synctest.Wait()
			return s
		}
		for range 3 {
			sleep("a", time.Hour)
		}
		sleep("b", 30*time.Minute)
		sleep("a", shortestPoll)

		time.Sleep(time.Millisecond)
		hub.sent("a", 2)
		for range 2 {
			require.Equal(t, result{true, time.Millisecond}, <-results, "one for each message")
		}
		synctest.Wait()
		require.Empty(t, results)
		hub.soon("b")
		require.Equal(t, result{true, time.Millisecond}, <-results)

		awake := hub.join("a")
		hub.sent("a", 0)
		require.True(t, awake.sleep(done, time.Hour), "whoever was looking looks once more")
		hub.soon("c")

		close(done)
		for range 2 {
			r := <-results
			require.False(t, r.woken)
		}
		awake.leave()
		synctest.Wait()
		require.Empty(t, hub.sleepers, "nothing is kept of those who left")
	})
}
