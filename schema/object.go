package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// object is one thing that a CREATE statement makes: its kind and name are read
// from any statement, its shape only where it is compared.
type object struct {
	kind string // QUEUE, TABLE, INDEX, VIEW, ...
	name string
	sql  string
}

// key is the name under which objects of all kinds exclude each other.
func (o object) key() string { return strings.ToLower(o.name) }

// Words between CREATE and the name. The last one before the name is one of
// objectKinds; roles, locality groups, proto bundles and the like have names of
// their own that exclude nothing else.
var (
	kindModifiers = []string{"OR", "REPLACE", "UNIQUE", "NULL_FILTERED", "SEARCH", "VECTOR", "CHANGE", "PROPERTY"}
	objectKinds   = []string{"QUEUE", "TABLE", "INDEX", "VIEW", "STREAM", "SEQUENCE", "MODEL", "GRAPH"}
)

// createdObject reads kind and name of what a statement creates. It is false
// for statements that create nothing with a name of the common kind, also for
// those that nobody can read: the database has accepted them, so they are none
// of ours.
func createdObject(sql string) (object, bool) {
	p := newParser(sql)
	if !p.accept("CREATE") {
		return object{}, false
	}
	for p.acceptOneOf(kindModifiers) != "" {
	}
	kind := p.acceptOneOf(objectKinds)
	if kind == "" {
		return object{}, false
	}
	p.accept("IF", "NOT", "EXISTS")
	var parts []string
	for {
		part, _, err := p.ident("a name")
		if err != nil {
			return object{}, false
		}
		parts = append(parts, part)
		if !p.accept(".") {
			return object{kind: kind, name: strings.Join(parts, "."), sql: sql}, true
		}
	}
}

func (p *parser) acceptOneOf(words []string) string {
	for _, w := range words {
		if p.accept(w) {
			return w
		}
	}
	return ""
}

// wanted is an object of a definition: what it needs to stand before it, and
// the shape it must have.
type wanted struct {
	object
	needs []string // keys of objects
	shape shape
}

// wantedObject reads a statement of an Element. Unlike what the database has,
// what we want must be readable in full.
func wantedObject(sql string) (wanted, error) {
	o, ok := createdObject(sql)
	if !ok {
		return wanted{}, fmt.Errorf("schema: expected CREATE QUEUE, CREATE TABLE or CREATE INDEX, found %q", firstLine(sql))
	}
	s, needs, err := o.read()
	if err != nil {
		return wanted{}, err
	}
	if differ := s.diff(s); len(differ) > 0 { // says one thing twice, in two ways
		return wanted{}, fmt.Errorf("schema: %s %s contradicts itself: %s", o.kind, o.name, differ[0])
	}
	return wanted{object: o, needs: needs, shape: s}, nil
}

// read parses the object's statement for its shape and the objects that it
// needs to stand before it.
func (o object) read() (shape, []string, error) {
	if o.kind == "QUEUE" {
		st, err := ParseStatement(o.sql)
		if err != nil {
			return nil, nil, fmt.Errorf("queue %s: %w", o.name, err)
		}
		create, ok := st.(*CreateQueue)
		if !ok { // CREATE OR REPLACE QUEUE, which does not exist
			return nil, nil, fmt.Errorf("schema: expected CREATE QUEUE, found %q", firstLine(o.sql))
		}
		return queueShape(create.Queue), appendKey(nil, create.Queue.Interleave.Table), nil
	}
	ddl, err := parseDDL(o.sql)
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %s %s cannot be read: %w", o.kind, o.name, err)
	}
	switch st := ddl.(type) {
	case *ast.CreateTable:
		return tableShape(st), tableNeeds(st), nil
	case *ast.CreateIndex:
		return indexShape(st), appendKey(nil, pathName(st.TableName)), nil
	}
	return nil, nil, fmt.Errorf("schema: %s %s cannot be compared: only queues, tables and indexes can", o.kind, o.name)
}

func tableNeeds(t *ast.CreateTable) []string {
	var needs []string
	if t.Cluster != nil {
		needs = appendKey(needs, pathName(t.Cluster.TableName))
	}
	for _, c := range t.TableConstraints {
		if fk, ok := c.Constraint.(*ast.ForeignKey); ok && !sameName(pathName(fk.ReferenceTable), pathName(t.Name)) {
			needs = appendKey(needs, pathName(fk.ReferenceTable))
		}
	}
	return needs
}

func appendKey(keys []string, name string) []string {
	if name == "" {
		return keys
	}
	return append(keys, strings.ToLower(name))
}

func pathName(p *ast.Path) string {
	parts := make([]string, len(p.Idents))
	for i, id := range p.Idents {
		parts[i] = id.Name
	}
	return strings.Join(parts, ".")
}

func firstLine(sql string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(sql), "\n")
	return line
}

// plainExpression returns an expression with one space between its tokens and
// everything but literals in one case, so that layout does not count as a
// difference.
func plainExpression(text string) string {
	p := newParser(text)
	var words []string
	for {
		switch t := p.next(); t.Kind {
		case token.TokenEOF:
			return strings.Join(words, " ")
		case token.TokenBad:
			return text
		case token.TokenString:
			words = append(words, quoteString(t.AsString))
		case token.TokenBytes:
			words = append(words, token.QuoteSQLBytes([]byte(t.AsString)))
		case token.TokenIdent:
			words = append(words, quoteIdent(strings.ToLower(t.AsString)))
		default:
			words = append(words, strings.ToUpper(t.Raw))
		}
	}
}
