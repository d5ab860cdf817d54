package schema

import (
	"fmt"
	"strings"
)

// nameProblem completes the sentence "the name ..." with what is wrong with s
// as the name of a queue or table, or returns "". The rule is Spanner's: a
// letter, then letters, digits and underscores, 128 at most.
func nameProblem(s string) string {
	if strings.Contains(s, ".") {
		return "must not have a dot: queues cannot be in a named schema"
	}
	if strings.HasPrefix(s, "_") {
		return "must begin with a letter"
	}
	return identProblem(s)
}

// identProblem is nameProblem for columns and the parts of a proto type's name,
// which may begin with an underscore.
func identProblem(s string) string {
	if s == "" {
		return "is empty"
	}
	if len(s) > maxNameLength {
		return fmt.Sprintf("has %d bytes; %d are allowed", len(s), maxNameLength)
	}
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if letter || i > 0 && r >= '0' && r <= '9' {
			continue
		}
		return fmt.Sprintf("must be made of letters, digits and underscores and not begin with a digit; found %q", r)
	}
	return ""
}

// sameName reports whether two names mean the same object or column: SQL does
// not look at case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
