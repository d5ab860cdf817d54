package tvf

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// DDL is what a DDL statement does to which object.
type DDL struct {
	Verb string // CREATE, ALTER or DROP
	Kind string // TABLE or INDEX
	Name string // without quotes
}

// ScanDDL reads the first words of a DDL statement. False: it is none that creates, alters or drops a table or index.
func ScanDDL(sql string) (DDL, bool) {
	t := newTokens(sql)
	t.next()
	word := func(choices ...string) string {
		for _, c := range choices {
			if t.is(c) {
				t.next()
				return c
			}
		}
		return ""
	}
	d := DDL{Verb: word("CREATE", "ALTER", "DROP")}
	for word("UNIQUE", "NULL_FILTERED", "OR", "REPLACE") != "" {
	}
	d.Kind = word("TABLE", "INDEX")
	for word("IF", "NOT", "EXISTS") != "" {
	}
	d.Name = t.path()
	return d, d.Verb != "" && d.Kind != "" && d.Name != ""
}

// ReplaceWord replaces every use of a function that takes no arguments, such as CURRENT_TIMESTAMP or
// CURRENT_TIMESTAMP(), by another expression. The word in strings, comments and quoted names stays.
func ReplaceWord(sql, word, expression string) string {
	t := newTokens(sql)
	var b strings.Builder
	done := 0
	for t.next(); !t.done(); t.next() {
		if !t.lexer.Token.IsKeywordLike(word) {
			continue
		}
		from, to := int(t.lexer.Token.Pos), int(t.lexer.Token.End)
		ahead := tokens{lexer: t.lexer.Clone()}
		if ahead.next(); ahead.kind() == "(" {
			if ahead.next(); ahead.kind() == ")" {
				to = int(ahead.lexer.Token.End)
				t.lexer = ahead.lexer
			}
		}
		b.WriteString(sql[done:from])
		b.WriteString(expression)
		done = to
	}
	if done == 0 {
		return sql
	}
	return b.String() + sql[done:]
}

// StringLiteral reads a text that is one string literal.
func StringLiteral(sql string) (string, bool) {
	t := newTokens(sql)
	t.next()
	if t.kind() != token.TokenString {
		return "", false
	}
	value := t.lexer.Token.AsString
	t.next()
	return value, t.kind() == token.TokenEOF
}
