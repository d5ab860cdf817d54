package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The text of any valid definition is read back as that definition.
func TestDDLIsReadBackAsTheSameQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQueue(t)
		if err := q.Validate(); err != nil {
			t.Fatalf("the generator made an invalid queue: %v\n%s", err, q.DDL())
		}
		st, err := ParseStatement(q.DDL())
		if err != nil {
			t.Fatalf("%v\n%s", err, q.DDL())
		}
		want := q
		want.PrimaryKey = q.KeyParts()
		require.Equal(t, &CreateQueue{Queue: want}, st)
		require.Equal(t, q.DDL(), st.(*CreateQueue).Queue.DDL())
	})
}

// Layout, case of keywords and comments between the tokens change nothing.
func TestLayoutChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQueue(t)
		for i := range q.KeyColumns {
			q.KeyColumns[i].Generated = "" // kept as written, so layout matters there
		}
		want, err := ParseStatement(q.DDL())
		require.NoError(t, err)
		st, err := ParseStatement(relay(t, q.DDL()))
		require.NoError(t, err)
		require.Equal(t, want, st)
	})
}

// relay writes the tokens of sql again with other space, comments, quotes and
// case between and in them.
func relay(t *rapid.T, sql string) string {
	p := newParser(sql)
	space := rapid.SampledFrom([]string{" ", "\n", "\t\r\n", " /* ) , DROP QUEUE */ ", " -- PRIMARY KEY\n", " # 'x\n"})
	var b strings.Builder
	for tok := p.next(); tok.Kind != "<eof>"; tok = p.next() {
		b.WriteString(space.Draw(t, "space"))
		text := tok.Raw
		switch {
		case tok.Kind == "<string>" && rapid.Bool().Draw(t, "triple"):
			text = `"""` + strings.ReplaceAll(strings.ReplaceAll(tok.AsString, `\`, `\\`), `"`, `\"`) + `"""`
		case tok.Kind == "<ident>":
			// Names and words look the same to the lexer; only those that are
			// not names may change case.
			if grammarWords[strings.ToUpper(text)] && rapid.Bool().Draw(t, "lower") {
				text = strings.ToLower(text)
			}
		case tok.Kind != "<string>" && rapid.Bool().Draw(t, "lower"):
			text = strings.ToLower(text)
		}
		b.WriteString(text)
	}
	return b.String() + rapid.SampledFrom([]string{"", ";", " ; -- end"}).Draw(t, "end")
}

var grammarWords = map[string]bool{
	"QUEUE": true, "KEY": true, "PRIMARY": true, "INT64": true, "STRING": true, "BYTES": true, "JSON": true, "TIMESTAMP": true,
	"STORED": true, "HIDDEN": true, "OPTIONS": true, "PARENT": true, "ACTION": true, "OLDER_THAN": true, "DAY": true, "MAX": true,
	"PAYLOAD": true, "CASCADE": true, "RECEIVE_MODE": true, "LOCALITY_GROUP": true, "DELIVERTIME": true,
}

func drawName(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9_]{0,12}_`),
		rapid.SampledFrom([]string{"Order", "select", "Hash", "NOT", "Users"}),
	).Draw(t, label)
}

func drawQueue(t *rapid.T) Queue {
	q := Queue{Name: drawName(t, "name")}
	taken := map[string]bool{}
	for i := range rapid.IntRange(1, 5).Draw(t, "key columns") {
		c := drawColumn(t)
		if taken[strings.ToLower(c.Name)] {
			c.Name = fmt.Sprintf("%s%d", c.Name, i)
		}
		taken[strings.ToLower(c.Name)] = true
		q.KeyColumns = append(q.KeyColumns, c)
	}
	q.Payload = rapid.OneOf(
		rapid.Map(drawLength(maxBytesLength), Bytes), rapid.Map(drawLength(maxStringLength), String),
		rapid.Just(JSON()), rapid.Map(drawProto(), Proto),
	).Draw(t, "payload")
	q.PayloadHidden = rapid.Bool().Draw(t, "payload hidden")
	if rapid.Bool().Draw(t, "explicit key") {
		for _, c := range rapid.Permutation(q.KeyColumns).Draw(t, "key") {
			q.PrimaryKey = append(q.PrimaryKey, KeyPart{Column: c.Name, Desc: rapid.Bool().Draw(t, "desc")})
		}
	}
	if rapid.Bool().Draw(t, "interleaved") {
		q.Interleave = Interleave{
			Table:    "P" + drawName(t, "parent"),
			InParent: rapid.Bool().Draw(t, "in parent"),
			OnDelete: OnDelete(rapid.IntRange(0, 1).Draw(t, "on delete")),
		}
		if sameName(q.Interleave.Table, q.Name) {
			q.Interleave.Table += "2"
		}
	}
	if rapid.Bool().Draw(t, "policy") {
		columns := []string{DeliverTimeColumn}
		for _, c := range q.KeyColumns {
			if c.Type.Kind == KindTimestamp {
				columns = append(columns, c.Name)
			}
		}
		q.RowDeletion = RowDeletion{
			Column: rapid.SampledFrom(columns).Draw(t, "policy column"),
			Days:   rapid.Int64Range(0, 4000).Draw(t, "days"),
		}
	}
	q.Options = QueueOptions{
		ReceiveMode:     rapid.SampledFrom([]string{"", ReceiveModePull}).Draw(t, "mode"),
		DisableSend:     rapid.Bool().Draw(t, "no send"),
		DisableDelivery: rapid.Bool().Draw(t, "no delivery"),
		LocalityGroup:   rapid.SampledFrom([]string{"", "cold", `it's "the" \ group`, "é\n\t\x01"}).Draw(t, "group"),
	}
	return q
}

func drawColumn(t *rapid.T) Column {
	c := Column{
		Name: drawName(t, "column"),
		Type: rapid.OneOf(
			rapid.SampledFrom([]Type{Bool(), Int64(), Float32(), Float64(), Numeric(), Date(), Timestamp(), Timestamp(), UUID()}),
			rapid.Map(drawLength(maxBytesLength), Bytes), rapid.Map(drawLength(maxStringLength), String),
			rapid.Map(drawProto(), Proto),
		).Draw(t, "type"),
		NotNull: rapid.Bool().Draw(t, "not null"),
		Hidden:  rapid.Bool().Draw(t, "hidden"),
		Generated: rapid.SampledFrom([]string{
			"", "", "1", "MOD(FARM_FINGERPRINT(Id), 8)", "((a) + (b))", "IF(x = ')', \"(\", `odd (name`)", "a /* ) */ +\n -- (\n b", "r'''\n'''", "arr[OFFSET(0)].f.select",
		}).Draw(t, "expression"),
	}
	if c.Type.Kind == KindTimestamp && c.Generated == "" {
		c.AllowCommitTimestamp = rapid.Bool().Draw(t, "commit timestamp")
	}
	return c
}

func drawLength(longest int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Just(Max), rapid.Int64Range(1, longest))
}

func drawProto() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.StringMatching(`_?[A-Za-z][A-Za-z0-9_]{0,5}_`), 1, 4), func(parts []string) string {
		return strings.Join(parts, ".")
	})
}
