package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// DDL returns the CREATE QUEUE statement of q in its canonical form: one
// column a line, names quoted where they must be, defaults left out.
// ParseStatement of it gives q again, with PrimaryKey filled in. The statement
// is only meaningful if Validate accepts q.
func (q Queue) DDL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE QUEUE %s (\n", quoteIdent(q.Name))
	for _, c := range q.KeyColumns {
		fmt.Fprintf(&b, "  %s,\n", c.DDL())
	}
	fmt.Fprintf(&b, "  %s\n) PRIMARY KEY (%s)", q.payloadColumn().DDL(), keyPartsDDL(q.KeyParts()))
	for _, clause := range []string{q.Interleave.DDL(), q.RowDeletion.DDL(), q.Options.DDL()} {
		if clause != "" {
			b.WriteString(",\n" + clause)
		}
	}
	return b.String()
}

// payloadColumn is Payload written as the column that it is.
func (q Queue) payloadColumn() Column {
	return Column{Name: PayloadColumn, Type: q.Payload, NotNull: true, Hidden: q.PayloadHidden}
}

// DDL returns the column as a column definition, which reads the same in
// CREATE QUEUE and CREATE TABLE.
func (c Column) DDL() string {
	parts := []string{quoteIdent(c.Name), c.Type.String()}
	if c.NotNull {
		parts = append(parts, "NOT NULL")
	}
	if c.Generated != "" {
		parts = append(parts, "AS ("+c.Generated+") STORED")
	}
	if c.Hidden {
		parts = append(parts, "HIDDEN")
	}
	if c.AllowCommitTimestamp {
		parts = append(parts, "OPTIONS (allow_commit_timestamp = true)")
	}
	return strings.Join(parts, " ")
}

// DDL returns the part as it stands in a PRIMARY KEY clause.
func (k KeyPart) DDL() string {
	if k.Desc {
		return quoteIdent(k.Column) + " DESC"
	}
	return quoteIdent(k.Column)
}

func keyPartsDDL(parts []KeyPart) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.DDL()
	}
	return strings.Join(texts, ", ")
}

// DDL returns the INTERLEAVE clause, or "" for the zero value.
func (i Interleave) DDL() string {
	if i.Table == "" {
		return ""
	}
	clause := "INTERLEAVE IN "
	if i.InParent {
		clause += "PARENT "
	}
	clause += quoteIdent(i.Table)
	if i.OnDelete == Cascade {
		clause += " ON DELETE CASCADE"
	}
	return clause
}

// DDL returns the ROW DELETION POLICY clause, or "" for the zero value.
func (r RowDeletion) DDL() string {
	if r.Column == "" {
		return ""
	}
	return fmt.Sprintf("ROW DELETION POLICY (OLDER_THAN(%s, INTERVAL %d DAY))", quoteIdent(r.Column), r.Days)
}

// DDL returns the OPTIONS clause, or "" for the zero value.
func (o QueueOptions) DDL() string {
	var set []string
	if o.ReceiveMode != "" {
		set = append(set, "receive_mode = "+quoteString(o.ReceiveMode))
	}
	if o.DisableSend {
		set = append(set, "disable_send = true")
	}
	if o.DisableDelivery {
		set = append(set, "disable_delivery = true")
	}
	if o.LocalityGroup != "" {
		set = append(set, "locality_group = "+quoteString(o.LocalityGroup))
	}
	if len(set) == 0 {
		return ""
	}
	return "OPTIONS (" + strings.Join(set, ", ") + ")"
}

func quoteString(s string) string { return token.QuoteSQLString(s) }
