package schema

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParseStatement: no text ends the parser badly; what is accepted is valid
// and reads back the same from its canonical form; what is refused is refused
// at a place in the text.
func FuzzParseStatement(f *testing.F) {
	for _, sql := range []string{
		"CREATE QUEUE Q (Id INT64 NOT NULL, Payload BYTES(MAX) NOT NULL,) PRIMARY KEY (Id DESC), INTERLEAVE IN PARENT P ON DELETE CASCADE, ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 7 DAY)), OPTIONS (receive_mode=\"PULL\", disable_send=true)",
		"create queue `q` (s int64 as (mod(farm_fingerprint(id), 8)) stored hidden, id string(36), at_ timestamp options (allow_commit_timestamp=true), payload a.b.`C` not null) primary key (s, id, at_);",
		"-- c\nCREATE /* x */ QUEUE IF NOT EXISTS Q (Id BYTES(0x10), Payload JSON NOT NULL HIDDEN) PRIMARY KEY (Id), OPTIONS (locality_group='''a\n\\u00e9''')",
		"ALTER QUEUE Q SET OPTIONS (disable_delivery = null, locality_group = r'\\x')",
		"ALTER QUEUE Q REPLACE ROW DELETION POLICY (OLDER_THAN(T, INTERVAL 1 DAY))",
		"ALTER QUEUE Q SET INTERLEAVE IN T ON DELETE NO ACTION",
		"DROP QUEUE IF EXISTS `Q` ;",
		"CREATE TABLE Queue (Id INT64) PRIMARY KEY (Id)",
		"CREATE QUEUE Q (\xff",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		st, err := ParseStatement(sql)
		if err != nil {
			checkParseError(t, sql, err)
			return
		}
		create, ok := st.(*CreateQueue)
		if !ok {
			return
		}
		if err := create.Queue.Validate(); err != nil {
			t.Fatalf("accepted, but invalid: %v", err)
		}
		canonical := create.Queue.DDL()
		again, err := ParseStatement(canonical)
		if err != nil {
			t.Fatalf("canonical form refused: %v\n%s", err, canonical)
		}
		if got := again.(*CreateQueue).Queue.DDL(); got != canonical {
			t.Fatalf("canonical form changed:\n%s\n%s", canonical, got)
		}
		for _, e := range []Element{Attempts{Queue: create.Queue}, DeadLetters{Queue: create.Queue}} {
			if e.Validate() != nil {
				continue
			}
			if _, err := wantedObject(e.Statements()[0]); err != nil {
				t.Fatalf("%T of it cannot be read: %v", e, err)
			}
		}
	})
}

// FuzzObject: whatever DDL a database shows, reading it ends well, and an object
// has its own shape.
func FuzzObject(f *testing.F) {
	for _, sql := range []string{
		string(usersTable),
		tasks().DDL(),
		DeadLetters{Queue: odd(), RetentionDays: 3}.Statements()[0],
		Operations{}.Statements()[0],
		Operations{}.Statements()[1],
		"CREATE TABLE T (Id INT64 PRIMARY KEY, N INT64 DEFAULT (1), A ARRAY<STRING(MAX)>, CONSTRAINT C FOREIGN KEY (N) REFERENCES T (Id), CHECK (N > 0)), INTERLEAVE IN PARENT P ON DELETE CASCADE",
		"CREATE UNIQUE NULL_FILTERED INDEX I ON T (A, B DESC) STORING (C), INTERLEAVE IN P",
		"CREATE OR REPLACE VIEW V SQL SECURITY INVOKER AS SELECT 1 AS x",
		"CREATE TABLE T (Id STRING(3) DEFAULT (\"\\x",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		createdObject(sql)
		w, err := wantedObject(sql)
		if err != nil {
			return
		}
		if differ := w.compareWith(w.object); len(differ) > 0 {
			t.Fatalf("differs from itself: %q", differ)
		}
		if _, err := planFor([]Element{SQL(sql)}); err != nil && !strings.Contains(err.Error(), "needs itself") {
			t.Fatalf("readable, but not as an element: %v", err)
		}
	})
}

func checkParseError(t *testing.T, sql string, err error) {
	t.Helper()
	var at *ParseError
	if !errors.As(err, &at) {
		t.Fatalf("error without a place: %v", err)
	}
	lines := strings.Split(sql, "\n")
	if at.Line < 1 || at.Line > len(lines) {
		t.Fatalf("line %d of %d: %v", at.Line, len(lines), err)
	}
	if n := len([]rune(lines[at.Line-1])); at.Column < 1 || at.Column > n+1 {
		t.Fatalf("column %d of %d: %v", at.Column, n, err)
	}
	if at.Reason == "" {
		t.Fatal("error without a reason")
	}
}
