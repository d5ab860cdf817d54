// Package docs holds the manual. Its tests hold the manual against the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = ".."

// pages returns all Markdown files of the repository, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			found[path] = string(text)
			return err
		}
		return nil
	}))
	return found
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

// anchors are those that GitHub makes of a page's headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	require.Contains(t, all, filepath.Join(root, "README.md"))
	checked := 0
	for path, text := range all {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			at := path
			if target != "" {
				at = filepath.Join(filepath.Dir(path), target)
				_, err := os.Stat(at)
				require.NoError(t, err, "%s links to %s", path, l[1])
			}
			if anchor != "" && filepath.Ext(at) == ".md" {
				require.True(t, anchors(all[at])[anchor], "%s links to %s, which has no such heading", path, l[1])
			}
		}
	}
	require.Greater(t, checked, 20)
}

// source returns the Go files of packages as one text.
func source(t *testing.T, packages ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join(root, p, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, p)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// What an operator searches the logs and the dashboards for must be what the code writes there.
func TestOperationsNamesWhatTheCodeWrites(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("operations.md")
	require.NoError(t, err)
	code := source(t, "processor", "lease")
	for what, pattern := range map[string]string{
		"log lines":   `msg="spanqueue: ([^"]+)"`,
		"log excerpt": "log: `([^`]+)`",
		"instruments": "`((?:spanqueue|messaging)\\.[a-z_]+\\.[a-z_.]+)`",
	} {
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		require.NotEmpty(t, found, what)
		for _, f := range found {
			if strings.HasPrefix(string(f[1]), "messaging.destination") || strings.HasPrefix(string(f[1]), "messaging.consumer") {
				require.True(t, strings.Contains(code, `attribute.String("`+string(f[1])+`"`), "%q is no label", f[1])
				continue
			}
			require.True(t, strings.Contains(code, string(f[1])), "%s: %q is nowhere in the code", what, f[1])
		}
	}

	// Every outcome and every reason has its line, and none has a line that does not exist.
	outcomes := regexp.MustCompile(`(?m)^\t[A-Z]\w+: +"([a-z -]+)",$`).FindAllStringSubmatch(source(t, "processor"), -1)
	require.Len(t, outcomes, 11)
	for _, o := range outcomes {
		require.Contains(t, section(string(text), "Figures"), "`"+o[1]+"`", "an outcome")
	}
	reasons := regexp.MustCompile(`(?m)^\treason\w+ += "([a-z ]+)"`).FindAllStringSubmatch(source(t, "processor"), -1)
	require.Len(t, reasons, 5)
	for _, r := range reasons {
		require.Contains(t, section(string(text), "Dead letters"), "| `"+r[1]+"` |", "a reason of dead letters")
	}
}

// section is the page from a heading to the next one.
func section(text, title string) string {
	_, after, _ := strings.Cut(text, "\n## "+title+"\n")
	s, _, _ := strings.Cut(after, "\n## ")
	return s
}
