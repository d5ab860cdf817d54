package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A message that has come in below the low-water mark is found by the next read from the beginning.
func TestMessageBelowTheMarkIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	require.Empty(t, w.takeNow(q))
	low := q.marks.from(cell{}, time.Now())
	require.False(t, low.IsZero())
	w.stranger("old", map[string]any{"DueTime": low.Add(-time.Hour), "VisibleAt": low.Add(-time.Hour)})
	w.stranger("new", map[string]any{"DueTime": low.Add(time.Second), "VisibleAt": low.Add(time.Second)})
	require.Equal(t, []string{"new"}, keys(w.takeNow(q)), "it is below the mark")
	q.marks.mu.Lock()
	q.marks.cells[cell{}].fullAt = time.Now()
	q.marks.mu.Unlock()
	require.Equal(t, []string{"old"}, keys(w.takeNow(q)))
	require.False(t, q.marks.from(cell{}, time.Now()).IsZero())
}
