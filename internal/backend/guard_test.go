package backend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

func TestTagIsOneThatSpannerTakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"queue=Q,handler=h":             "queue=Q,handler=h",
		"":                              "",
		"handler=größe\n\x7f~ ":         "handler=gr????e??~ ",
		strings.Repeat("0123456789", 6): strings.Repeat("0123456789", 5),
	} {
		require.Equal(t, want, backend.Tag(text))
	}
}

func TestDeliverTimesThatCanBeStored(t *testing.T) {
	t.Parallel()
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	for _, at := range []time.Time{{}, first, last, time.Now()} {
		require.NoError(t, backend.CheckDeliverTime(at))
	}
	for _, at := range []time.Time{first.Add(-1), last.Add(1)} {
		require.ErrorContains(t, backend.CheckDeliverTime(at), "years 1 to 9999")
	}
}
