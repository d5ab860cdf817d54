package tvf

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// Function is a table function of queues.
type Function int

const (
	// None is no function of queues.
	None Function = iota
	// Receive is RECEIVE_<Queue>.
	Receive
	// Renew is RENEWLEASE_<Queue>.
	Renew
)

const (
	receivePrefix = "RECEIVE_"
	renewPrefix   = "RENEWLEASE_"
)

// String returns the function's name up to the queue's.
func (f Function) String() string {
	switch f {
	case Receive:
		return receivePrefix
	case Renew:
		return renewPrefix
	}
	return "(no function)"
}

// Verb is the first word of a statement, as far as queues care.
type Verb int

const (
	// Other is a statement of another kind, or none.
	Other Verb = iota
	// Query is SELECT, WITH and so on.
	Query
	// Insert is INSERT and INSERT OR IGNORE.
	Insert
	// InsertOrUpdate is INSERT OR UPDATE.
	InsertOrUpdate
	// Update is UPDATE.
	Update
	// Delete is DELETE.
	Delete
)

// Call is a function called by name, not known to exist.
type Call struct {
	Function Function
	Queue    string // as written
}

// Shape is what Scan found.
type Shape struct {
	Verb Verb
	// Table is the table that DML changes, as written, without quotes.
	Table string
	// Calls are the calls whose names are those of queue functions, in order.
	Calls []Call
	// Reads are the names that stand where a table is read from, as written, without quotes. A name that means
	// something else there, such as that of a WITH clause, is among them.
	Reads []string
}

// Scan finds out what kind of statement the text is.
func Scan(sql string) Shape {
	t := newTokens(sql)
	var s Shape
	t.next()
	t.skipHint()
	for t.kind() == "(" {
		t.next()
	}
	switch {
	case t.is("SELECT"), t.is("WITH"), t.is("FROM"), t.is("GRAPH"):
		s.Verb = Query
	case t.is("INSERT"):
		s.Verb = Insert
		t.next()
		if t.is("OR") {
			t.next()
			if t.is("UPDATE") {
				s.Verb = InsertOrUpdate
			}
			t.next()
		}
		if t.is("INTO") {
			t.next()
		}
		s.Table = t.path()
	case t.is("UPDATE"):
		s.Verb = Update
		t.next()
		s.Table = t.path()
	case t.is("DELETE"):
		s.Verb = Delete
		t.next()
		if t.is("FROM") {
			t.next()
		}
		s.Table = t.path()
	}
	from := newFromClauses()
	for !t.done() {
		from.see(t)
		_, ok := t.ident()
		if !ok {
			t.next()
			continue
		}
		name, table := t.path(), from.expected()
		if t.kind() != "(" {
			if table {
				s.Reads = append(s.Reads, name)
			}
			continue
		}
		if f, queue := FunctionOf(name); f != None {
			s.Calls = append(s.Calls, Call{Function: f, Queue: queue})
		}
	}
	return s
}

// FunctionOf splits the name of a function of a queue. Case does not matter.
func FunctionOf(name string) (Function, string) {
	for _, f := range []Function{Receive, Renew} {
		prefix := f.String()
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return f, name[len(prefix):]
		}
	}
	return None, ""
}

// tokens walks over the tokens of a statement. What cannot be read ends the statement.
type tokens struct {
	lexer *memefish.Lexer
	bad   bool
}

func newTokens(sql string) *tokens {
	return &tokens{lexer: &memefish.Lexer{File: &token.File{Buffer: sql}}}
}

// next moves on. The lexer panics on some texts that are cut short, such as a string that ends inside an escape.
func (t *tokens) next() {
	defer func() {
		if recover() != nil {
			t.bad = true
		}
	}()
	if !t.bad && t.lexer.NextToken() != nil {
		t.bad = true
	}
}

func (t *tokens) done() bool {
	return t.bad || t.lexer.Token.Kind == token.TokenEOF || t.lexer.Token.Kind == token.TokenBad
}

func (t *tokens) kind() token.TokenKind {
	if t.bad {
		return token.TokenBad
	}
	return t.lexer.Token.Kind
}

// is reports whether the token is the word, as a keyword or as an unquoted name.
func (t *tokens) is(word string) bool {
	return !t.bad && (t.lexer.Token.Kind == token.TokenKind(word) || t.lexer.Token.IsKeywordLike(word))
}

func (t *tokens) ident() (string, bool) {
	if t.kind() != token.TokenIdent {
		return "", false
	}
	return t.lexer.Token.AsString, true
}

// path reads a name with dots, and stays behind it.
func (t *tokens) path() string {
	name, ok := t.ident()
	if !ok {
		return ""
	}
	t.next()
	for t.kind() == "." {
		t.next()
		part, ok := t.ident()
		if !ok {
			return name
		}
		name += "." + part
		t.next()
	}
	return name
}

// skipHint passes over a statement hint, @{...}.
func (t *tokens) skipHint() {
	if t.kind() != "@" {
		return
	}
	for !t.done() && t.kind() != "}" {
		t.next()
	}
	t.next()
}
