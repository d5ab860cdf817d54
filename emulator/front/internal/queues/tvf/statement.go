package tvf

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// Statement is one call of a queue function, read in full.
type Statement struct {
	Call
	// Alias is the name that the statement gives to the function's rows, or "".
	Alias string
	// List is the select list.
	List []Item
	// Where is the text of the condition, or "".
	Where string

	arguments []argument
}

// Item is one entry of a select list.
type Item struct {
	// Star is * or alias.*, and Except are the columns that it leaves out.
	Star   bool
	Except []string
	// Column is the name of the column, if the entry is nothing but a column.
	Column string
	// SQL is the text of the entry, with its alias if it has one. It is empty for a star.
	SQL string
}

// maxTokens bounds the statements that are read, and with it the depth of the parser's recursion: a request must not
// be able to exhaust the stack. Strings, parameters and commas do not count, so that a renewal may list many tokens.
const maxTokens = 10_000

// Parse reads a statement for which Scan found calls. The error says what is wrong and where.
func Parse(sql string) (*Statement, error) {
	text, alias, err := prepare(sql)
	if err != nil {
		return nil, err
	}
	query, err := parseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("the statement cannot be read: %w", err)
	}
	sel, source, err := plainSelect(query)
	if err != nil {
		return nil, err
	}
	s := &Statement{Alias: alias}
	if len(source.Name.Idents) == 1 {
		s.Function, s.Queue = FunctionOf(source.Name.Idents[0].Name)
	}
	if s.Function == None {
		return nil, fmt.Errorf("%s is not a function of a queue; a statement that calls one reads from nothing else", source.Name.SQL())
	}
	if source.Hint != nil || source.Sample != nil {
		return nil, fmt.Errorf("%s%s takes neither a hint nor TABLESAMPLE", s.Function, s.Queue)
	}
	if s.arguments, err = readArguments(s.Function, source); err != nil {
		return nil, err
	}
	if sel.Where != nil {
		if err := refuseSubqueries(sel.Where.Expr); err != nil {
			return nil, err
		}
		s.Where = slice(text, sel.Where.Expr)
	}
	for _, item := range sel.Results {
		if err := refuseSubqueries(item); err != nil {
			return nil, err
		}
		read, err := readItem(text, alias, item)
		if err != nil {
			return nil, err
		}
		s.List = append(s.List, read)
	}
	return s, nil
}

// prepare blanks out what the parser does not read: the alias of a table function, which it returns, and semicolons at
// the end. Positions stay as they are.
func prepare(sql string) (text, alias string, err error) {
	blanked := []byte(sql)
	blank := func(from, to token.Pos) {
		for i := from; i < to; i++ {
			if blanked[i] != '\n' {
				blanked[i] = ' '
			}
		}
	}
	t := newTokens(sql)
	count, depth := 0, 0
	function := -1         // the depth at which the function's parentheses open
	afterCall := false     // the token before this one ends the call, or is an AS behind it
	called := false        // the call has been seen
	afterFunction := false // the token before this one is the function's name
	for t.next(); !t.done(); t.next() {
		tok := t.lexer.Token
		wasAfterCall := afterCall
		afterCall = false
		switch tok.Kind {
		case token.TokenString, token.TokenParam, ",":
		default:
			if count++; count > maxTokens {
				return "", "", fmt.Errorf("the statement has more than %d words and signs", maxTokens)
			}
		}
		switch {
		case tok.Kind == "(":
			if afterFunction && function < 0 {
				function = depth
			}
			depth++
		case tok.Kind == ")":
			depth--
			afterCall = depth == function && !called
			called = called || afterCall
		case tok.Kind == "AS" && wasAfterCall:
			blank(tok.Pos, tok.End)
			afterCall = true
		case tok.Kind == token.TokenIdent && wasAfterCall && !tok.IsKeywordLike("TABLESAMPLE"):
			alias = tok.AsString
			blank(tok.Pos, tok.End)
		case tok.Kind == ";":
			rest := tokens{lexer: t.lexer.Clone()}
			for rest.kind() == ";" {
				rest.next()
			}
			if rest.kind() != token.TokenEOF {
				return "", "", fmt.Errorf("one statement is expected, but more follows the semicolon")
			}
			blank(tok.Pos, tok.End)
		}
		name, ok := t.ident()
		f, _ := FunctionOf(name)
		afterFunction = ok && f != None
	}
	if t.bad {
		return "", "", fmt.Errorf("the statement cannot be read: it has an unfinished string, comment or name, or a character that SQL does not know")
	}
	return string(blanked), alias, nil
}

// parseQuery runs the parser, which panics on some texts that are no SQL.
func parseQuery(text string) (q *ast.QueryStatement, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is no SQL: %v", r)
		}
	}()
	parser := &memefish.Parser{Lexer: &memefish.Lexer{File: &token.File{Buffer: text}}}
	return parser.ParseQuery()
}

// plainSelect checks that the query is a SELECT from one function and has no clause but WHERE.
func plainSelect(q *ast.QueryStatement) (*ast.Select, *ast.TVFCallExpr, error) {
	refuse := func(what string) (*ast.Select, *ast.TVFCallExpr, error) {
		return nil, nil, fmt.Errorf("%s cannot be used with a queue function: only SELECT list FROM function(arguments) WHERE condition can", what)
	}
	expr := q.Query
	if outer, ok := expr.(*ast.Query); ok {
		switch {
		case outer.With != nil:
			return refuse("WITH")
		case outer.OrderBy != nil:
			return refuse("ORDER BY")
		case outer.Limit != nil:
			return refuse("LIMIT")
		case outer.ForUpdate != nil:
			return refuse("FOR UPDATE")
		case len(outer.PipeOperators) > 0:
			return refuse("the pipe syntax")
		}
		expr = outer.Query
	}
	sel, ok := expr.(*ast.Select)
	switch {
	case !ok:
		return refuse("a set operation or a query in parentheses")
	case sel.AllOrDistinct == ast.AllOrDistinctDistinct:
		return refuse("DISTINCT")
	case sel.As != nil:
		return refuse("SELECT AS")
	case sel.GroupBy != nil:
		return refuse("GROUP BY")
	case sel.Having != nil:
		return refuse("HAVING")
	case sel.From == nil:
		return refuse("a SELECT without FROM")
	}
	source, ok := sel.From.Source.(*ast.TVFCallExpr)
	if !ok {
		return refuse("a join, subquery or table")
	}
	return sel, source, nil
}

func refuseSubqueries(n ast.Node) error {
	for n := range ast.Preorder(n) {
		switch n.(type) {
		case *ast.ScalarSubQuery, *ast.ArraySubQuery, *ast.ExistsSubQuery, *ast.SubQueryInCondition:
			return fmt.Errorf("a subquery cannot be used with a queue function")
		}
	}
	return nil
}

func readItem(text, alias string, item ast.SelectItem) (Item, error) {
	star := func(except *ast.StarModifierExcept, replace *ast.StarModifierReplace) (Item, error) {
		if replace != nil {
			return Item{}, fmt.Errorf("* REPLACE cannot be used with a queue function: name the columns")
		}
		it := Item{Star: true}
		if except != nil {
			for _, c := range except.Columns {
				it.Except = append(it.Except, c.Name)
			}
		}
		return it, nil
	}
	switch item := item.(type) {
	case *ast.Star:
		return star(item.Except, item.Replace)
	case *ast.DotStar:
		if name, ok := item.Expr.(*ast.Ident); !ok || alias == "" || !strings.EqualFold(name.Name, alias) {
			return Item{}, fmt.Errorf("%s.* names no row of the function", item.Expr.SQL())
		}
		return star(item.Except, item.Replace)
	case *ast.Alias:
		return Item{Column: columnOf(alias, item.Expr), SQL: slice(text, item)}, nil
	case *ast.ExprSelectItem:
		return Item{Column: columnOf(alias, item.Expr), SQL: slice(text, item)}, nil
	}
	return Item{}, fmt.Errorf("%s cannot be used in the select list of a queue function", item.SQL())
}

// columnOf returns the column's name if e is nothing but a column, perhaps with the alias before it.
func columnOf(alias string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if alias == "" || !strings.EqualFold(e.Name, alias) { // the alias alone is the whole row
			return e.Name
		}
	case *ast.Path:
		if len(e.Idents) == 2 && alias != "" && strings.EqualFold(e.Idents[0].Name, alias) {
			return e.Idents[1].Name
		}
	}
	return ""
}

func slice(text string, n ast.Node) string { return text[n.Pos():n.End()] }
