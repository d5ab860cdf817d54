package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// simpleKinds are the types that are one word and have no length.
var simpleKinds = map[string]Kind{
	"BOOL": KindBool, "INT64": KindInt64, "FLOAT32": KindFloat32, "FLOAT64": KindFloat64,
	"NUMERIC": KindNumeric, "DATE": KindDate, "TIMESTAMP": KindTimestamp, "UUID": KindUUID, "JSON": KindJSON,
}

// noColumnKinds are types of Spanner that neither a key nor a payload can have.
var noColumnKinds = []string{"ARRAY", "STRUCT", "TOKENLIST", "INTERVAL"}

// columnType reads the type of a column; of names the column in errors.
func (p *parser) columnType(of string) (Type, error) {
	t := p.at(0)
	for _, k := range noColumnKinds {
		if p.isWord(0, k) {
			return Type{}, p.errorAt(t.Pos, "%s cannot be %s: neither a key nor a payload can be one", of, k)
		}
	}
	if t.Kind != token.TokenIdent {
		return Type{}, p.expected("the type of " + of)
	}
	if strings.HasPrefix(t.Raw, "`") { // `shop.v1.Order`, the whole path in one pair of quotes
		return p.protoType()
	}
	word := strings.ToUpper(t.AsString)
	if kind, ok := simpleKinds[word]; ok && !p.isWord(1, ".") {
		p.next()
		if p.isWord(0, "(") {
			return Type{}, p.errorAt(p.at(0).Pos, "%s has no length", kind)
		}
		return Type{Kind: kind}, nil
	}
	if kind := Kind(word); (kind == KindString || kind == KindBytes) && !p.isWord(1, ".") {
		p.next()
		length, err := p.length(kind)
		return Type{Kind: kind, Length: length}, err
	}
	return p.protoType()
}

// length reads (n) or (MAX).
func (p *parser) length(kind Kind) (int64, error) {
	if err := p.expect("("); err != nil {
		return 0, err
	}
	if p.accept("MAX") {
		return Max, p.expect(")")
	}
	n, err := p.integer(fmt.Sprintf("the length of %s, a whole number or MAX", kind))
	if err != nil {
		return 0, err
	}
	return n, p.expect(")")
}

func (p *parser) protoType() (Type, error) {
	var parts []string
	for {
		part, _, err := p.ident("a type's name")
		if err != nil {
			return Type{}, err
		}
		parts = append(parts, part)
		if !p.accept(".") {
			return Proto(strings.Join(parts, ".")), nil
		}
	}
}

// integer reads a whole number, decimal or hexadecimal.
func (p *parser) integer(what string) (int64, error) {
	t := p.at(0)
	if t.Kind != token.TokenInt {
		return 0, p.expected(what)
	}
	n, err := strconv.ParseInt(t.Raw, 0, 64)
	if t.Base == 10 { // ParseInt would read 010 as octal
		n, err = strconv.ParseInt(t.Raw, 10, 64)
	}
	if err != nil {
		return 0, p.errorAt(t.Pos, "expected %s, found %s, which is too large", what, t.Raw)
	}
	p.next()
	return n, nil
}

// expression reads ( ... ) and returns the text inside as written, without the
// comments and space at its two ends.
func (p *parser) expression() (string, error) {
	if err := p.expect("("); err != nil {
		return "", err
	}
	first, depth := p.at(0), 0
	end := first.Pos
	for {
		t := p.at(0)
		switch t.Kind {
		case token.TokenEOF, token.TokenBad, ";":
			return "", p.expected(") to end the expression")
		case "(":
			depth++
		case ")":
			if depth == 0 {
				if end == first.Pos {
					return "", p.expected("an expression")
				}
				p.next()
				return p.sql[first.Pos:end], nil
			}
			depth--
		}
		end = t.End
		p.next()
	}
}

// expressionProblem says why text cannot stand in AS ( ... ) STORED, or "".
// It is the inverse of expression: what passes here is read back unchanged.
func expressionProblem(text string) string {
	p := newParser("(" + text + ")")
	got, err := p.expression()
	if err == nil {
		err = p.end()
	}
	switch {
	case err != nil:
		return "the expression cannot be read: " + err.(*ParseError).Reason
	case got != text:
		return "write the expression without space or comments around it"
	}
	return ""
}

// columnOptions reads an optional OPTIONS clause of a column.
func (p *parser) columnOptions() (allowCommitTimestamp bool, err error) {
	if !p.accept("OPTIONS") {
		return false, nil
	}
	err = p.options(map[string]func() error{
		"allow_commit_timestamp": func() error {
			switch {
			case p.accept("TRUE"):
				allowCommitTimestamp = true
				return nil
			case p.accept("NULL"):
				return nil
			}
			return p.expected("TRUE or NULL")
		},
	})
	return allowCommitTimestamp, err
}

// interleave reads INTERLEAVE IN [PARENT] table [ON DELETE action], and says
// where the clause began.
func (p *parser) interleave() (Interleave, token.Pos, error) {
	pos := p.at(0).Pos
	if err := p.expect("INTERLEAVE", "IN"); err != nil {
		return Interleave{}, pos, err
	}
	i := Interleave{InParent: p.accept("PARENT")}
	var err error
	if i.Table, _, err = p.objectName("the name of the parent table"); err != nil {
		return Interleave{}, pos, err
	}
	if p.accept("ON") {
		if err := p.expect("DELETE"); err != nil {
			return Interleave{}, pos, err
		}
		if i.OnDelete, err = p.onDelete(); err != nil {
			return Interleave{}, pos, err
		}
	}
	return i, pos, nil
}

func (p *parser) onDelete() (OnDelete, error) {
	switch {
	case p.accept("CASCADE"):
		return Cascade, nil
	case p.accept("NO", "ACTION"):
		return NoAction, nil
	}
	return 0, p.expected("CASCADE or NO ACTION")
}

// rowDeletion reads ROW DELETION POLICY (OLDER_THAN(column, INTERVAL n DAY)).
func (p *parser) rowDeletion() (RowDeletion, token.Pos, error) {
	pos := p.at(0).Pos
	if err := p.expect("ROW", "DELETION", "POLICY", "(", "OLDER_THAN", "("); err != nil {
		return RowDeletion{}, pos, err
	}
	column, _, err := p.ident("a TIMESTAMP column's name")
	if err != nil {
		return RowDeletion{}, pos, err
	}
	if err := p.expect(",", "INTERVAL"); err != nil {
		return RowDeletion{}, pos, err
	}
	days, err := p.integer("a number of days")
	if err != nil {
		return RowDeletion{}, pos, err
	}
	return RowDeletion{Column: column, Days: days}, pos, p.expect("DAY", ")", ")")
}
