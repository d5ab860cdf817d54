package schema

import (
	"fmt"
	"strings"
)

// Element is something that Apply can make stand in the database: Queue, QueueTable,
// Attempts, DeadLetters, SQL, or a definition of another package's own.
type Element interface {
	// Validate returns nil if the element can be created as far as can be told
	// without the database. It neither blocks nor changes anything.
	Validate() error
	// Statements returns the DDL that creates the element where nothing of it
	// exists: CREATE QUEUE, CREATE TABLE and CREATE INDEX statements, one a
	// string. Each object they name is one that Apply looks for, compares and
	// creates if it is missing. They are read only after Validate returned nil.
	Statements() []string
}

// SQL is an Element written as text: CREATE TABLE, CREATE INDEX and CREATE
// QUEUE statements with semicolons between them. It is for the application's
// own tables, above all those that a queue is interleaved in.
type SQL string

// Validate returns an error for text that cannot be split into statements, and
// for a statement that Apply could not compare with what exists.
func (s SQL) Validate() error {
	statements, err := s.split()
	if err != nil {
		return err
	}
	if len(statements) == 0 {
		return fieldErrorf("SQL", string(s), "there is no statement in it")
	}
	for _, sql := range statements {
		if _, err := wantedObject(sql); err != nil {
			return err
		}
	}
	return nil
}

// Statements returns the statements, without empty ones.
func (s SQL) Statements() []string {
	statements, err := s.split()
	if err != nil { // Validate has said so
		return nil
	}
	return statements
}

func (s SQL) split() ([]string, error) {
	raw, err := splitStatements(string(s))
	if err != nil {
		return nil, fmt.Errorf("schema: SQL: %w", err)
	}
	var statements []string
	for _, r := range raw {
		if text := strings.TrimSpace(r.Statement); text != "" {
			statements = append(statements, text)
		}
	}
	return statements, nil
}
