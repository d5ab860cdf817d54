package front

import (
	"context"
	"sync"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
)

// dialects remembers the dialect of databases, which never changes. The zero value is ready.
type dialects struct {
	mu sync.Mutex
	of map[string]databasepb.DatabaseDialect
}

func (d *dialects) remember(database string, dialect databasepb.DatabaseDialect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = make(map[string]databasepb.DatabaseDialect)
	}
	d.of[database] = dialect
}

func (d *dialects) forget(database string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, database)
}

func (d *dialects) find(database string) (databasepb.DatabaseDialect, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dialect, ok := d.of[database]
	return dialect, ok
}

// dialect asks the emulator once for each database.
func (s *Server) dialect(ctx context.Context, database string) (databasepb.DatabaseDialect, error) {
	if d, ok := s.dialects.find(database); ok {
		return d, nil
	}
	db, err := s.databases.GetDatabase(ctx, &databasepb.GetDatabaseRequest{Name: database})
	if err != nil {
		return 0, err
	}
	s.dialects.remember(database, db.GetDatabaseDialect())
	return db.GetDatabaseDialect(), nil
}
