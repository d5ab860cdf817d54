package processor

import (
	"bytes"
	"log/slog"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

func TestLongestRetries(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for _, c := range []struct {
		attempts int
		backoff  Backoff
		want     time.Duration
	}{
		{1, Backoff{}, h},
		{4, Backoff{Min: time.Second, Max: time.Minute}, h + 7*time.Second},
		{4, Backoff{Min: time.Second, Max: 2 * time.Second}, h + 5*time.Second},
		{25, Backoff{Min: h, Max: h}, 25 * h},
		{-1, Backoff{}, 0},
		{4, Backoff{Min: -1}, 0},
		{math.MaxInt, Backoff{}, math.MaxInt64},
	} {
		got := longestRetries(Config{MaxAttempts: c.attempts, Backoff: c.backoff.withDefaults()})
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// F29: a record that is gone before its message has given up is a hole, and New says so.
func TestOnceWarnsOfAShortRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention time.Duration
		config    Config
		warns     bool
	}{
		{0, Config{}, false}, // 48 h, and some three hours of retries
		{2 * time.Hour, Config{}, true},
		{2 * time.Hour, Config{MaxAttempts: 3}, false},
		{0, Config{Backoff: Backoff{Max: 6 * time.Hour}}, true},
	} {
		store, err := idempotency.New(&spanner.Client{}, schema.Operations{Retention: c.retention}, idempotency.Config{})
		require.NoError(t, err)
		var log bytes.Buffer
		c.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		config := c.config.withDefaults("Q")
		Once{Store: store}.tune(&config)
		if !c.warns {
			require.Empty(t, log.String())
			continue
		}
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), store.Retention().String())
		require.Contains(t, log.String(), "Operations.Retention")
	}
}
