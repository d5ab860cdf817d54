package deadletter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Filter chooses letters. What is zero chooses all.
type Filter struct {
	Key             spanner.Key // in the types of package rowcodec
	Reason, Handler string
	Error           string    // must occur in the text of the error
	From, Until     time.Time // of death; Until is the first time that is too late
}

// Page returns up to n letters, without their payloads: the oldest first, those of one time by key. after is the letter
// that the page before ended with, or nil.
func (s *Store) Page(ctx context.Context, f Filter, after *ID, n int) ([]Letter, error) {
	var letters []Letter
	err := s.client.Single().Query(ctx, s.pageStatement(f, after, n)).Do(func(row *spanner.Row) error {
		l, err := s.letter(row)
		letters = append(letters, l)
		return err
	})
	return letters, s.explain(err)
}

// Latest returns the time of the last death that is on record; the zero time when there is none.
func (s *Store) Latest(ctx context.Context) (time.Time, error) {
	var latest spanner.NullTime
	sql := fmt.Sprintf("SELECT MAX(%s) FROM %s", quote(s.names.DeadAt), quote(s.table))
	err := s.client.Single().Query(ctx, spanner.Statement{SQL: sql}).Do(func(row *spanner.Row) error { return row.Columns(&latest) })
	return latest.Time, s.explain(err)
}

// where collects conditions and their parameters.
type where struct {
	conditions []string
	params     map[string]any
}

func (w *where) add(format string, value any) {
	name := fmt.Sprintf("p%d", len(w.params))
	w.params[name] = value
	w.conditions = append(w.conditions, fmt.Sprintf(format, "@"+name))
}

// part compares one column of the key with a value that may be NULL: = is also IS NULL, > is what comes after it in an
// ascending order, in which NULL is first.
func (w *where) part(column, operator string, value any) string {
	switch {
	case !rowcodec.IsNull(value):
		name := fmt.Sprintf("p%d", len(w.params))
		w.params[name] = value
		return fmt.Sprintf("%s %s @%s", quote(column), operator, name)
	case operator == "=":
		return quote(column) + " IS NULL"
	}
	return quote(column) + " IS NOT NULL"
}

func (s *Store) pageStatement(f Filter, after *ID, n int) spanner.Statement {
	w := where{params: map[string]any{"n": int64(n)}}
	names := s.names
	for i, part := range f.Key {
		w.conditions = append(w.conditions, w.part(s.keys[i], "=", part))
	}
	if f.Reason != "" {
		w.add(quote(names.Reason)+" = %s", f.Reason)
	}
	if f.Handler != "" {
		w.add(quote(names.Handler)+" = %s", f.Handler)
	}
	if f.Error != "" {
		w.add("STRPOS("+quote(names.Error)+", %s) > 0", f.Error)
	}
	if !f.From.IsZero() {
		w.add(quote(names.DeadAt)+" >= %s", f.From)
	}
	if !f.Until.IsZero() {
		w.add(quote(names.DeadAt)+" < %s", f.Until)
	}
	if after != nil {
		w.conditions = append(w.conditions, s.after(&w, *after))
	}
	condition := ""
	if len(w.conditions) > 0 {
		condition = " WHERE " + strings.Join(w.conditions, " AND ")
	}
	return spanner.Statement{
		SQL: fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s, %s LIMIT @n", quoteAll(s.columns), quote(s.table), condition,
			quote(names.DeadAt), quoteAll(s.keys)),
		Params: w.params,
	}
}

// after is the condition that a letter comes after the given one in the order of pages.
func (s *Store) after(w *where, id ID) string {
	w.params["dead"] = id.DeadAt
	dead := quote(s.names.DeadAt)
	alternatives := []string{dead + " > @dead"}
	equal := dead + " = @dead"
	for i, k := range s.keys {
		alternatives = append(alternatives, equal+" AND "+w.part(k, ">", id.Key[i]))
		equal += " AND " + w.part(k, "=", id.Key[i])
	}
	return "(" + strings.Join(alternatives, " OR ") + ")"
}

func quote(identifier string) string { return "`" + identifier + "`" }

func quoteAll(identifiers []string) string {
	quoted := make([]string, len(identifiers))
	for i, id := range identifiers {
		quoted[i] = quote(id)
	}
	return strings.Join(quoted, ", ")
}
