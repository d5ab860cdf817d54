package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cloudspannerecosystem/memefish"

	"github.com/spanqueue/spanqueue/emulator"
)

// newDatabases are what `spanqueue emulator` creates before it tells its address, for programs that expect a database to
// be there.
type newDatabases struct {
	names []string
	ddl   string // path of a file, or ""
}

// statements reads the file, before anything is started.
func (n newDatabases) statements() ([]string, error) {
	if n.ddl == "" {
		return nil, nil
	}
	if len(n.names) == 0 {
		return nil, fmt.Errorf("--ddl is %q, but no --database says what it is for", n.ddl)
	}
	text, err := os.ReadFile(n.ddl)
	if err != nil {
		return nil, fmt.Errorf("--ddl: %w", err)
	}
	statements, err := splitDDL(n.ddl, string(text))
	if err != nil {
		return nil, fmt.Errorf("--ddl: %s cannot be divided into statements at its semicolons: %w", n.ddl, err)
	}
	return statements, nil
}

// splitDDL divides a text at the semicolons outside of strings and comments.
func splitDDL(name, text string) (statements []string, err error) {
	defer func() {
		if r := recover(); r != nil { // the lexer panics on some texts that are cut short
			err = fmt.Errorf("%v", r)
		}
	}()
	raw, err := memefish.SplitRawStatements(name, text)
	for _, s := range raw {
		if s.Statement != "" {
			statements = append(statements, s.Statement)
		}
	}
	return statements, err
}

func (n newDatabases) create(ctx context.Context, e *emulator.Emulator, statements []string) error {
	for _, name := range n.names {
		if err := e.CreateDatabase(ctx, name, statements...); err != nil {
			return err
		}
	}
	return nil
}
