package schema

import (
	"fmt"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
)

// guarded calls into memefish and turns a panic there into an error. Its lexer
// reaches beyond the text while it words the error for some unclosed literals
// (a text of "\x and nothing more); whatever a client or a database sends, it
// must not end this process.
func guarded(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the text cannot be read: %v", r)
		}
	}()
	return call()
}

func parseDDL(sql string) (ddl ast.DDL, err error) {
	err = guarded(func() (err error) {
		ddl, err = memefish.ParseDDL("", sql)
		return err
	})
	return ddl, err
}

func splitStatements(sql string) (raw []*memefish.RawStatement, err error) {
	err = guarded(func() (err error) {
		raw, err = memefish.SplitRawStatements("", sql)
		return err
	})
	return raw, err
}
