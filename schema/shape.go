package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
)

// shape is what is compared of an object: facts in the order in which they are
// reported. Layout, the case of names and the order of columns are no facts.
type shape []fact

type fact struct {
	what  string
	value string
	// optional facts are compared only where the definition has them.
	optional bool
}

// diff returns one line for each fact in which found is not as wanted.
func (s shape) diff(found shape) []string {
	var lines []string
	have := make(map[string]string, len(found))
	for _, f := range found {
		have[f.what] = f.value
	}
	want := make(map[string]bool, len(s))
	for _, f := range s {
		want[f.what] = true
		switch value, ok := have[f.what]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: want %s, found none", f.what, f.value))
		case value != f.value:
			lines = append(lines, fmt.Sprintf("%s: want %s, found %s", f.what, f.value, value))
		}
	}
	for _, f := range found {
		if !want[f.what] && !f.optional {
			lines = append(lines, fmt.Sprintf("%s: want none, found %s", f.what, f.value))
		}
	}
	return lines
}

// add appends a fact unless its value is empty.
func (s *shape) add(what, value string) {
	if value != "" {
		*s = append(*s, fact{what: what, value: value})
	}
}

func columnFact(name string) string { return "column " + strings.ToLower(name) }

// queueShape is the shape of a queue. Its options are optional: an operator
// turns sending and delivery off and on while the queue lives, and a definition
// that is silent about them must not be at odds with that.
func queueShape(q Queue) shape {
	var s shape
	for _, c := range append(q.KeyColumns[:len(q.KeyColumns):len(q.KeyColumns)], q.payloadColumn()) {
		c.Generated = plainExpression(c.Generated)
		s.add(columnFact(c.Name), strings.TrimPrefix(c.DDL(), quoteIdent(c.Name)+" "))
	}
	parts := q.KeyParts()
	for i := range parts {
		parts[i].Column = strings.ToLower(parts[i].Column)
	}
	s.add("primary key", "("+keyPartsDDL(parts)+")")
	s.add("interleave", interleaveFact(q.Interleave))
	if r := q.RowDeletion; r.Column != "" {
		s.add("row deletion policy", rowDeletionFact(r.Column, fmt.Sprint(r.Days)))
	}
	for _, o := range []struct {
		name  string
		value string
		set   bool
	}{
		{"disable_send", "true", q.Options.DisableSend},
		{"disable_delivery", "true", q.Options.DisableDelivery},
		{"locality_group", quoteString(q.Options.LocalityGroup), q.Options.LocalityGroup != ""},
	} {
		if o.set {
			s = append(s, fact{what: "option " + o.name, value: o.value, optional: true})
		}
	}
	return s
}

func interleaveFact(i Interleave) string {
	i.Table = strings.ToLower(i.Table)
	return i.DDL()
}

func rowDeletionFact(column, days string) string {
	return fmt.Sprintf("OLDER_THAN(%s, INTERVAL %s DAY)", strings.ToLower(column), days)
}

// tableShape is the shape of a table. HIDDEN is left out: the emulator does not
// show it. Indexes are objects of their own, and others than the wanted ones
// are nobody's business here.
func tableShape(t *ast.CreateTable) shape {
	var s shape
	var key []string
	for _, c := range t.Columns {
		s.add(columnFact(c.Name.Name), columnDefFact(c))
		if c.PrimaryKey {
			key = append(key, quoteIdent(strings.ToLower(c.Name.Name)))
		}
	}
	for _, k := range t.PrimaryKeys {
		key = append(key, indexKeyFact(k))
	}
	s = append(s, fact{what: "primary key", value: "(" + strings.Join(key, ", ") + ")"})
	for _, c := range t.TableConstraints {
		what := "constraint"
		if c.Name != nil {
			what += " " + strings.ToLower(c.Name.Name)
		} else {
			what += " " + c.Constraint.SQL()
		}
		s.add(what, c.Constraint.SQL())
	}
	if c := t.Cluster; c != nil {
		s.add("interleave", interleaveFact(Interleave{Table: pathName(c.TableName), InParent: c.Enforced, OnDelete: onDeleteOf(c.OnDelete)}))
	}
	if r := t.RowDeletionPolicy; r != nil {
		s.add("row deletion policy", rowDeletionFact(r.RowDeletionPolicy.ColumnName.Name, r.RowDeletionPolicy.NumDays.Value))
	}
	addOptions(&s, t.Options)
	return s
}

func onDeleteOf(a ast.OnDeleteAction) OnDelete {
	if a == ast.OnDeleteCascade {
		return Cascade
	}
	return NoAction
}

func columnDefFact(c *ast.ColumnDef) string {
	parts := []string{schemaTypeFact(c.Type)}
	if c.NotNull {
		parts = append(parts, "NOT NULL")
	}
	if c.DefaultSemantics != nil {
		parts = append(parts, plainExpression(c.DefaultSemantics.SQL()))
	}
	if c.PlacementKey != nil {
		parts = append(parts, c.PlacementKey.SQL())
	}
	var options shape
	addOptions(&options, c.Options)
	for _, o := range options {
		parts = append(parts, o.what+" = "+o.value)
	}
	return strings.Join(parts, " ")
}

// schemaTypeFact writes a proto type the same whether its path is quoted as a
// whole, in parts or not at all.
func schemaTypeFact(t ast.SchemaType) string {
	named, ok := t.(*ast.NamedType)
	if !ok {
		return t.SQL()
	}
	return pathName(&ast.Path{Idents: named.Path})
}

func indexKeyFact(k *ast.IndexKey) string {
	return KeyPart{Column: strings.ToLower(k.Name.Name), Desc: k.Dir == ast.DirectionDesc}.DDL()
}

// addOptions adds each option that is set: NULL and false are the defaults.
func addOptions(s *shape, options *ast.Options) {
	if options == nil {
		return
	}
	for _, o := range options.Records {
		value := strings.TrimPrefix(o.SQL(), o.Name.SQL())
		value = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(value), "="))
		if value != "null" && value != "false" {
			s.add("option "+strings.ToLower(o.Name.Name), value)
		}
	}
}

func indexShape(i *ast.CreateIndex) shape {
	var s shape
	s.add("table", strings.ToLower(pathName(i.TableName)))
	keys := make([]string, len(i.Keys))
	for n, k := range i.Keys {
		keys[n] = indexKeyFact(k)
	}
	s.add("keys", strings.Join(keys, ", "))
	if i.Unique {
		s.add("unique", "UNIQUE")
	}
	if i.NullFiltered {
		s.add("null-filtered", "NULL_FILTERED")
	}
	if i.Storing != nil {
		columns := make([]string, len(i.Storing.Columns))
		for n, c := range i.Storing.Columns {
			columns[n] = strings.ToLower(c.Name)
		}
		s.add("storing", strings.Join(columns, ", "))
	}
	if i.Where != nil {
		s.add("where", plainExpression(i.Where.SQL()))
	}
	if i.InterleaveIn != nil {
		s.add("interleave", strings.ToLower(i.InterleaveIn.TableName.Name))
	}
	addOptions(&s, i.Options)
	return s
}
