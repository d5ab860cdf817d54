package emulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/emulator.md shows in Go and Node is run, in the file that it names; what nobody runs says so in its heading.
func TestManualShowsWhatIsRun(t *testing.T) {
	t.Parallel()
	const manual, from, fence = "docs/emulator.md", "<!-- from ", "```"
	text, err := os.ReadFile(filepath.Join("..", manual))
	require.NoError(t, err)

	var heading, source, before string
	var language string // of the open block
	var block []string
	run := 0
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case language == "" && strings.HasPrefix(line, "## "):
			heading = line
		case language == "" && strings.HasPrefix(line, fence):
			language, block, source = strings.TrimPrefix(line, fence)+" ", nil, ""
			if path, ok := strings.CutPrefix(before, from); ok {
				source = strings.TrimSuffix(path, " -->")
			}
		case language != "" && line == fence:
			switch name := strings.TrimSpace(language); {
			case source != "":
				program, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(source)))
				require.NoError(t, err)
				if !strings.Contains(flat(string(program)), flat(strings.Join(block, "\n"))) {
					t.Errorf("the block before line %d of %s is not what stands in %s", i+1, manual, source)
				}
				run++
			case name == "go" || name == "js":
				t.Errorf("the block before line %d of %s is not run: name its source in a comment before it", i+1, manual)
			case name != "" && name != "sh" && !strings.HasSuffix(heading, "(not run here)"):
				t.Errorf("the block before line %d of %s is not run, and %q does not say so", i+1, manual, heading)
			}
			language = ""
		case language != "":
			block = append(block, line)
		}
		before = line
	}
	require.GreaterOrEqual(t, run, 5, "the blocks that are run")
}

// flat drops what may differ: the indentation of a block inside its program, and comment marks around one in a doc.go.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "//\t"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
