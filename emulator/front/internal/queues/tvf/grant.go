package tvf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// RoleStatement is CREATE ROLE, DROP ROLE, GRANT or REVOKE.
type RoleStatement struct {
	// Verb is CREATE, DROP, GRANT or REVOKE.
	Verb string
	// If is set for CREATE ROLE IF NOT EXISTS and DROP ROLE IF EXISTS.
	If bool
	// Roles are the role that is created or dropped, or those to which something is granted.
	Roles []string
	// Kind says what Objects are, such as QUEUE, TABLE FUNCTION, TABLE, or ROLE where roles are granted to roles.
	Kind string
	// Objects are names without quotes; one in a schema has a dot.
	Objects []string
	// Privileges are in upper case, with their columns if they have any: "SELECT", "UPDATE(A, B)". Empty for Kind ROLE.
	Privileges []string
}

// objectKinds are what privileges can be granted on. Longer ones come before those that they begin with.
var objectKinds = []string{
	"TABLE FUNCTION", "CHANGE STREAM", "QUEUE", "TABLE", "VIEW", "SEQUENCE", "MODEL", "SCHEMA",
	"ALL TABLES IN SCHEMA", "ALL VIEWS IN SCHEMA", "ALL SEQUENCES IN SCHEMA", "ALL CHANGE STREAMS IN SCHEMA",
}

var privileges = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "USAGE"}

// ParseRole reads a statement about roles. False: it is about something else, and there is no error.
func ParseRole(sql string) (*RoleStatement, bool, error) {
	t := newTokens(sql)
	t.next()
	s := &RoleStatement{}
	for _, verb := range []string{"CREATE", "DROP", "GRANT", "REVOKE"} {
		if t.is(verb) {
			s.Verb = verb
		}
	}
	if s.Verb == "" {
		return nil, false, nil
	}
	t.next()
	var err error
	switch {
	case s.Verb == "GRANT" || s.Verb == "REVOKE":
		err = s.grant(t)
	case t.is("ROLE"):
		t.next()
		err = s.role(t)
	default:
		return nil, false, nil
	}
	if err == nil {
		err = t.end()
	}
	if err != nil {
		return nil, true, err
	}
	return s, true, nil
}

func (s *RoleStatement) role(t *tokens) error {
	condition := map[string]string{"CREATE": "IF NOT EXISTS", "DROP": "IF EXISTS"}[s.Verb]
	s.If = t.words(condition)
	name := t.path()
	if name == "" || strings.Contains(name, ".") {
		return t.expected("the role's name")
	}
	s.Roles = []string{name}
	return nil
}

func (s *RoleStatement) grant(t *tokens) (err error) {
	to := map[string]string{"GRANT": "TO ROLE", "REVOKE": "FROM ROLE"}[s.Verb]
	if t.is("ROLE") {
		s.Kind = "ROLE"
		t.next()
	} else {
		if err := s.privileges(t); err != nil {
			return err
		}
		if !t.words("ON") {
			return t.expected("ON")
		}
		for _, kind := range objectKinds {
			if t.words(kind) {
				s.Kind = kind
				break
			}
		}
		if s.Kind == "" {
			return t.expected("one of " + strings.Join(objectKinds, ", "))
		}
	}
	if s.Objects, err = t.names("a name"); err != nil {
		return err
	}
	if !t.words(to) {
		return t.expected(to)
	}
	s.Roles, err = t.names("a role's name")
	return err
}

func (s *RoleStatement) privileges(t *tokens) error {
	for {
		var privilege string
		for _, p := range privileges {
			if t.is(p) {
				privilege = p
			}
		}
		if privilege == "" {
			return t.expected("one of " + strings.Join(privileges, ", "))
		}
		t.next()
		if t.kind() == "(" {
			t.next()
			columns, err := t.names("a column's name")
			if err != nil {
				return err
			}
			if t.kind() != ")" {
				return t.expected(")")
			}
			t.next()
			privilege += "(" + QuoteNames(columns) + ")"
		}
		s.Privileges = append(s.Privileges, privilege)
		if t.kind() != "," {
			return nil
		}
		t.next()
	}
}

// QuoteNames lists names, each quoted where it must be.
func QuoteNames(names []string) string {
	var list []string
	for _, name := range names {
		parts := strings.Split(name, ".")
		for i, p := range parts {
			parts[i] = token.QuoteSQLIdent(p)
		}
		list = append(list, strings.Join(parts, "."))
	}
	return strings.Join(list, ", ")
}

// words takes the words, separated by spaces, if they are all next.
func (t *tokens) words(words string) bool {
	ahead := &tokens{lexer: t.lexer.Clone(), bad: t.bad}
	for w := range strings.FieldsSeq(words) {
		if !ahead.is(w) {
			return false
		}
		ahead.next()
	}
	*t = *ahead
	return true
}

// names takes names separated by commas.
func (t *tokens) names(what string) ([]string, error) {
	var names []string
	for {
		name := t.path()
		if slices.Contains(strings.Split(name, "."), "") { // a quoted name may have anything in it
			return nil, t.expected(what)
		}
		names = append(names, name)
		if t.kind() != "," {
			return names, nil
		}
		t.next()
	}
}

// end takes a semicolon and then nothing more.
func (t *tokens) end() error {
	if t.kind() == ";" {
		t.next()
	}
	if t.kind() != token.TokenEOF {
		return t.expected("the end of the statement")
	}
	return nil
}

func (t *tokens) expected(what string) error {
	switch t.kind() {
	case token.TokenEOF:
		return fmt.Errorf("expected %s, found the end of the text", what)
	case token.TokenBad:
		return fmt.Errorf("expected %s, found text that cannot be read", what)
	}
	return fmt.Errorf("expected %s, found %s", what, t.lexer.Token.Raw)
}
