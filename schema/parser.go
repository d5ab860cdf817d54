package schema

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// ParseError says where a queue statement stops making sense, what is there,
// and what was expected.
type ParseError struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	// Reason says what was expected and what was found.
	Reason string
	// Field is set when the text reads well but the definition in it cannot be
	// used: the field of the Queue that is at fault.
	Field *FieldError
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("schema: line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Unwrap returns the *FieldError behind it, if there is one.
func (e *ParseError) Unwrap() error {
	if e.Field == nil {
		return nil
	}
	return e.Field
}

// parser walks the tokens of one statement. Tokens come from memefish's lexer,
// which knows comments, literals and quoting; the grammar of queues is ours.
type parser struct {
	sql   string
	lexer *memefish.Lexer
	// toks are the tokens read so far: no more than were asked for, since text
	// that is not about queues is not ours to judge. The last token there is is
	// EOF, or one of kind TokenBad that lexErr explains.
	toks   []token.Token
	lexErr error
	pos    int
}

func newParser(sql string) *parser {
	return &parser{sql: sql, lexer: &memefish.Lexer{File: &token.File{Buffer: sql}}}
}

// lex reads one more token.
func (p *parser) lex() {
	if err := guarded(p.lexer.NextToken); err != nil {
		bad := token.Token{Kind: token.TokenBad, Pos: p.lexer.Token.Pos, End: p.lexer.Token.Pos}
		var lexical *memefish.Error
		if errors.As(err, &lexical) {
			bad.Pos, bad.End = lexical.Position.Pos, lexical.Position.End
			p.lexErr = errors.New(lexical.Message)
		} else {
			p.lexErr = err
		}
		p.toks = append(p.toks, bad)
		return
	}
	p.toks = append(p.toks, p.lexer.Token)
}

// ended reports whether the last token there is has been read.
func (p *parser) ended() bool {
	n := len(p.toks)
	return n > 0 && (p.toks[n-1].Kind == token.TokenEOF || p.toks[n-1].Kind == token.TokenBad)
}

// at returns the token i places ahead; beyond the end it is the last token.
func (p *parser) at(i int) *token.Token {
	for len(p.toks) <= p.pos+i && !p.ended() {
		p.lex()
	}
	return &p.toks[min(p.pos+i, len(p.toks)-1)]
}

// next takes the token; the last one stays.
func (p *parser) next() *token.Token {
	t := p.at(0)
	if t.Kind != token.TokenEOF && t.Kind != token.TokenBad {
		p.pos++
	}
	return t
}

// isWord reports whether the token i places ahead is the sign, or the word in
// any case, reserved or not, and not in quotes of any kind.
func (p *parser) isWord(i int, word string) bool {
	t := p.at(i)
	return t.Kind == token.TokenKind(word) || t.IsKeywordLike(word)
}

// accept takes the words if they are all next, in order, and nothing if not.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if !p.isWord(i, w) {
			return false
		}
	}
	for range words {
		p.next()
	}
	return true
}

// expect takes the words or says at which of them the text differs.
func (p *parser) expect(words ...string) error {
	for _, w := range words {
		if !p.accept(w) {
			return p.expected(w)
		}
	}
	return nil
}

// end accepts one semicolon and then nothing more.
func (p *parser) end() error {
	if p.accept(";") && p.at(0).Kind != token.TokenEOF {
		return p.errorAt(p.at(0).Pos, "one statement at a time: found %s after the semicolon", p.describe(p.at(0)))
	}
	if p.at(0).Kind != token.TokenEOF {
		return p.expected("the end of the statement")
	}
	return nil
}

// ident takes an identifier; what names it in the error.
func (p *parser) ident(what string) (string, token.Pos, error) {
	t := p.at(0)
	if t.Kind == token.TokenIdent {
		p.next()
		return t.AsString, t.Pos, nil
	}
	if token.IsKeyword(t.Raw) && t.Kind != token.TokenEOF && t.Kind != token.TokenBad {
		return "", 0, p.errorAt(t.Pos, "expected %s, found the reserved word %s; write `%s` in back-quotes to use it as a name", what, t.Raw, t.Raw)
	}
	return "", 0, p.expected(what)
}

// objectName takes the name of a queue or table: one identifier, no path.
func (p *parser) objectName(what string) (string, token.Pos, error) {
	name, pos, err := p.ident(what)
	if err != nil {
		return "", 0, err
	}
	if p.isWord(0, ".") {
		return "", 0, p.errorAt(pos, "%s: found a path that begins with %q; queues cannot be in a named schema", what, name)
	}
	return name, pos, nil
}

// expected is the error of a text that does not go on as it should.
func (p *parser) expected(what string) error {
	t := p.at(0)
	if t.Kind == token.TokenBad {
		return p.errorAt(t.Pos, "%s", p.lexErr)
	}
	return p.errorAt(t.Pos, "expected %s, found %s", what, p.describe(t))
}

func (p *parser) describe(t *token.Token) string {
	switch t.Kind {
	case token.TokenEOF:
		return "the end of the text"
	case token.TokenBad:
		return fmt.Sprintf("text that cannot be read (%s)", p.lexErr)
	}
	const longest = 40
	if raw := t.Raw; utf8.RuneCountInString(raw) > longest {
		return string([]rune(raw)[:longest]) + "..."
	}
	return t.Raw
}

func (p *parser) errorAt(pos token.Pos, format string, args ...any) error {
	line, column := lineColumn(p.sql, int(pos))
	return &ParseError{Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// lineColumn turns a byte offset into a line and a character in it, from 1.
func lineColumn(sql string, offset int) (line, column int) {
	before := sql[:min(max(offset, 0), len(sql))]
	line = 1 + strings.Count(before, "\n")
	column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return line, column
}
