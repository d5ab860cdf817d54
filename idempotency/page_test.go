package idempotency_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

var (
	testOnThePage = regexp.MustCompile("`(Test\\w+)[`/]")
	testHere      = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	figureOnPage  = regexp.MustCompile("`(?:spanqueue\\.idempotency)?\\.([a-z_]+)`")
)

// The page names a test for each mistake: it is there. And it names each figure
// there is.
func TestThePageNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/idempotency.md")
	require.NoError(t, err)
	here := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range testHere.FindAllStringSubmatch(string(text), -1) {
			here[found[1]] = true
		}
	}
	named := testOnThePage.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(named), 20)
	for _, name := range named {
		require.True(t, here[name[1]], "%s is on the page and not in the package", name[1])
	}

	m := newMeter()
	b := newBench(t, idempotency.Config{MeterProvider: m})
	_, err = b.do(t, op, payload("p"))
	require.NoError(t, err)
	b.sweep(t)
	var onPage, inFact []string
	for _, found := range figureOnPage.FindAllStringSubmatch(string(page), -1) {
		onPage = append(onPage, found[1])
	}
	values, _ := m.read(t)
	for name := range values {
		inFact = append(inFact, strings.TrimPrefix(name, "spanqueue.idempotency."))
	}
	require.Subset(t, onPage, inFact)
}
