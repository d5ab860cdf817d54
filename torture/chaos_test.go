//go:build unix

package main

import (
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kill counts when it hits a message in a handler or a Commit under way, and not otherwise.
func TestKillsThatCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told                  []string
		kills, idle, inCommit int64
		left                  []string
	}{
		"at nothing":          {nil, 0, 1, 0, nil},
		"in a handler":        {[]string{"enter T1"}, 1, 0, 0, []string{"T1"}},
		"a handler has ended": {[]string{"enter T1", "leave T1"}, 0, 1, 0, []string{"T1"}},
		"a Commit under way":  {[]string{"enter T1", "leave T1", "commit"}, 1, 0, 1, []string{"T1"}},
		"a Commit answered":   {[]string{"commit", "answered"}, 0, 1, 0, nil},
		"two, one answered":   {[]string{"commit", "commit", "answered"}, 1, 0, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := "printf '" + strings.Join(append(c.told, "ready"), `\n`) + `\n'; exec sleep 600`
			crew := newCrew(job{}, func(job) (*exec.Cmd, error) { return exec.Command("sh", "-c", script), nil }, func(string, string) {}, io.Discard)
			require.NoError(t, crew.start())
			require.NoError(t, crew.ready(t.Context()))
			victim := crew.alive[0]
			chaos := &chaos{crew: crew, recoveries: newRecoveries()}
			require.NoError(t, chaos.killOne(t.Context(), rand.New(rand.NewPCG(1, 1))))
			<-victim.ended
			for _, p := range crew.alive { // the one in its place
				p.kill()
			}
			require.Equal(t, c.kills, chaos.kills.Load())
			require.Equal(t, c.idle, chaos.idleKills.Load())
			require.Equal(t, c.inCommit, chaos.inCommit.Load())
			require.Len(t, chaos.recoveries.waits, len(c.left))
			for _, id := range c.left {
				require.Contains(t, chaos.recoveries.waits, id)
			}
		})
	}
}
