package tvf

import "github.com/cloudspannerecosystem/memefish/token"

// fromClauses follows the FROM clauses of a statement token by token, to know where the name of a table stands. There
// is one at a time for each depth of parentheses.
type fromClauses struct {
	depths []fromClause // the last one is where the walk is
}

type fromClause struct {
	list bool // inside of FROM ...: a comma goes on to the next table
	next bool // the next name is a table's
}

func newFromClauses() *fromClauses { return &fromClauses{depths: []fromClause{{}}} }

// afterTables are the words that end the list of tables, or begin another select.
var afterTables = []string{"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "WINDOW", "SET", "VALUES", "THEN", "ASSERT_ROWS_MODIFIED"}

// see looks at the token that the walk has come to.
func (f *fromClauses) see(t *tokens) {
	now := &f.depths[len(f.depths)-1]
	switch t.kind() {
	case "(":
		// A join in parentheses has tables too; a subquery begins with SELECT.
		f.depths = append(f.depths, fromClause{list: now.next, next: now.next})
		now.next = false
		return
	case ")":
		if len(f.depths) > 1 {
			f.depths = f.depths[:len(f.depths)-1]
		}
		return
	case ",":
		now.next = now.list
		return
	case "@":
		ahead := tokens{lexer: t.lexer.Clone()}
		if ahead.next(); ahead.kind() == "{" { // a hint, such as behind JOIN
			t.skipHint()
			f.see(t)
		}
		return
	case token.TokenIdent:
		return
	}
	switch {
	case t.is("FROM"), t.is("JOIN"):
		now.list, now.next = true, true
	default:
		now.next = false
		for _, word := range afterTables {
			now.list = now.list && !t.is(word)
		}
	}
}

// expected reports whether the name that was just read is that of a table, and takes note that it was.
func (f *fromClauses) expected() bool {
	now := &f.depths[len(f.depths)-1]
	expected := now.next
	now.next = false
	return expected
}
