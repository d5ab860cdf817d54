package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	shellLine = regexp.MustCompile(`(?m)^ +(spanqueue .+)$`)
	shellWord = regexp.MustCompile(`'[^']*'|\S+`)
)

// Every command line of the manual is one that this program takes.
func TestTheManualsCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	examples, err := filepath.Glob("../../examples/*/README.md")
	require.NoError(t, err)
	checked := 0
	for _, file := range append(append(files, examples...), "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range shellLine.FindAllStringSubmatch(string(text), -1) {
			command, _, _ := strings.Cut(line[1], " #")
			command, _, _ = strings.Cut(command, " > ")
			words := shellWord.FindAllString(command, -1)
			for i, w := range words {
				words[i] = strings.Trim(w, "'")
			}
			cmd, rest, err := newRoot().Find(words[1:])
			require.NoError(t, err, "%s: %s", file, command)
			require.True(t, cmd.Runnable(), "%s: %s", file, command)
			require.NoError(t, cmd.ParseFlags(rest), "%s: %s", file, command)
			require.NoError(t, cmd.ValidateRequiredFlags(), "%s: %s", file, command)
			require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %s", file, command)
			checked++
		}
	}
	require.Greater(t, checked, 10)
}
