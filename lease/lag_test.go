package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLag(t *testing.T) {
	t.Parallel()
	ours, theirs := time.Unix(1000, 0), time.Unix(5_000_000, 0)
	var l lag
	for i, row := range []struct{ arrived, granted, want time.Duration }{
		{5 * time.Second, 0, 0},                               // the first is the measure
		{6 * time.Second, time.Second, 0},                     // as quick
		{9 * time.Second, 2 * time.Second, 2 * time.Second},   // two seconds slower
		{9 * time.Second, 5 * time.Second, 0},                 // quicker than the first: the measure from now on
		{10 * time.Second, 5 * time.Second, time.Second},      // against that one
		{100 * time.Second, 6 * time.Second, 7 * time.Second}, // no more than the most
		{101 * time.Second, 3600 * time.Second, 0},            // a clock that steps ahead
		{102 * time.Second, 6 * time.Second, 7 * time.Second}, // and back
		{103 * time.Second, 3602 * time.Second, 0},            // is forgotten
	} {
		require.Equal(t, row.want, l.of(ours.Add(row.arrived), theirs.Add(row.granted), 7*time.Second), "row %d", i)
	}
	require.Zero(t, l.of(ours.Add(time.Hour), time.Time{}, time.Minute), "without a stamp nothing is known")
}
