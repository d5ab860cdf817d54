package roles

import (
	"fmt"

	"github.com/cloudspannerecosystem/memefish/token"
)

// Table is the name of the table that keeps the book of a database.
const Table = "spanqueue_roles"

// Declare is the statement that stores the book. exists says that the table is there.
func (b Book) Declare(exists bool) (string, error) {
	text, err := b.Text()
	if err != nil {
		return "", err
	}
	literal := token.QuoteSQLString(text)
	if exists {
		return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN Declaration SET DEFAULT (%s)", Table, literal), nil
	}
	return fmt.Sprintf("CREATE TABLE %s (\n  Declaration STRING(MAX) NOT NULL DEFAULT (%s)\n) PRIMARY KEY (Declaration)", Table, literal), nil
}
