package front_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of rules names tests that exist, or says why there is none.
func TestRulesAreShownByTests(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
		return err
	}))
	text, err := os.ReadFile("rules.go")
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^//\t(\S.*?)  +(enforced|not)  +(\S.*)$`)
	rows := row.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, strings.Count(string(text), "\n//\t")-1, "a line that is no row, besides the head")
	require.Greater(t, len(rows), 50)
	for _, r := range rows {
		if r[2] == "not" {
			continue
		}
		for _, name := range strings.Fields(r[3]) {
			require.True(t, known[name], "%s: there is no %s", r[1], name)
		}
	}
}
