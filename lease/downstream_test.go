package lease

import (
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
)

func TestDownstreamKey(t *testing.T) {
	t.Parallel()
	// A stored value: the key must be the same in every version, since the other side remembers it.
	require.Equal(t, "f776309168cee4839077a2aeb64febc6580d57d04526091f1e11d15ba834be23", downstreamKey("Q", spanner.Key{"a", int64(7)}, "charge", nil))
	seen := map[string]string{}
	for what, key := range map[string]string{
		"itself":             downstreamKey("Q", spanner.Key{"a"}, "charge", nil),
		"another queue":      downstreamKey("R", spanner.Key{"a"}, "charge", nil),
		"another key":        downstreamKey("Q", spanner.Key{"b"}, "charge", nil),
		"another name":       downstreamKey("Q", spanner.Key{"a"}, "mail", nil),
		"an occurrence":      downstreamKey("Q", spanner.Key{"a"}, "charge", []string{"2026-01"}),
		"another occurrence": downstreamKey("Q", spanner.Key{"a"}, "charge", []string{"2026-02"}),
		"two occurrences":    downstreamKey("Q", spanner.Key{"a"}, "charge", []string{"2026", "-01"}),
		"moved borders":      downstreamKey("Q", spanner.Key{"a"}, "charg", []string{"e"}),
		"a number, no text":  downstreamKey("Q", spanner.Key{int64(1)}, "charge", nil),
		"a text, no number":  downstreamKey("Q", spanner.Key{"1"}, "charge", nil),
	} {
		require.Len(t, key, 64)
		require.NotContains(t, seen, key, "%s is taken for %s", what, seen[key])
		seen[key] = what
	}
}
