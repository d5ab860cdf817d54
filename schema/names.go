package schema

import (
	"fmt"
	"strings"
)

// nameProblem completes the sentence "the name ..." with what is wrong with s
// as the name of a queue, table or column, or returns "".
func nameProblem(s string) string {
	if strings.Contains(s, ".") {
		return "must not have a dot: queues cannot be in a named schema"
	}
	return identProblem(s)
}

// identProblem completes "the name ..." for one identifier. The rule is
// Spanner's: a letter, then letters, digits and underscores, 128 at most.
func identProblem(s string) string {
	if s == "" {
		return "is empty"
	}
	if len(s) > maxNameLength {
		return fmt.Sprintf("has %d characters; %d are allowed", len(s), maxNameLength)
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if letter || i > 0 && (r == '_' || r >= '0' && r <= '9') {
			continue
		}
		return fmt.Sprintf("must be a letter followed by letters, digits and underscores; found %q", r)
	}
	return ""
}

// sameName reports whether two names mean the same object or column: SQL does
// not look at case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
