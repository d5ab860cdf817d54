package tvf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// Column is a column of the rows that a function returns.
type Column struct {
	Name string
	// Hidden leaves the column out of *.
	Hidden bool
}

// Output is one column of a statement's result.
type Output struct {
	// Column is the index of the function's column that this one repeats, or -1 if it must be evaluated.
	Column int
	// SQL is the entry of a select list that gives it.
	SQL string
}

// Outputs returns the columns of the statement's result, in order. A column that the function does not have is left to
// the evaluation to refuse; only in EXCEPT it is an error.
func (s *Statement) Outputs(columns []Column) ([]Output, error) {
	index := func(name string) int {
		return slices.IndexFunc(columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
	}
	var out []Output
	for _, item := range s.List {
		if !item.Star {
			o := Output{Column: -1, SQL: item.SQL}
			if item.Column != "" {
				o.Column = index(item.Column)
			}
			out = append(out, o)
			continue
		}
		for _, name := range item.Except {
			if index(name) < 0 {
				return nil, fmt.Errorf("%s%s has no column %s, which EXCEPT names", s.Function, s.Queue, name)
			}
		}
		for i, c := range columns {
			if !c.Hidden && !slices.ContainsFunc(item.Except, func(e string) bool { return strings.EqualFold(e, c.Name) }) {
				out = append(out, Output{Column: i, SQL: token.QuoteSQLIdent(c.Name)})
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the select list has no column left")
	}
	return out, nil
}
