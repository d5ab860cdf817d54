package queues_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func TestStatement(t *testing.T) {
	t.Parallel()
	_, q := newEmpty(t)
	defer q.Close()
	tasks := []string{"tasks"}
	for sql, want := range map[string]struct {
		kind    queues.Kind
		touched []string
		code    codes.Code
	}{
		"SELECT 1":                        {},
		"nonsense '":                      {},
		"SELECT * FROM Tasks":             {},
		"SELECT 'UPDATE Tasks'":           {},
		"SELECT * FROM RECEIVE_Other()":   {},
		"/* RECEIVE_Tasks() */ SELECT 1":  {},
		"UPDATE Other SET x = 1":          {},
		"INSERT INTO Other (x) VALUES(1)": {},
		"DELETE FROM tasks WHERE Id = '' ASSERT_ROWS_MODIFIED 1":              {},
		"SELECT * FROM receive_tasks()":                                       {kind: queues.Receive},
		"SELECT * FROM `RENEWLEASE_Tasks`(lease_tokens => [])":                {kind: queues.Renew},
		"SELECT * FROM RECEIVE_Other(), RECEIVE_Tasks()":                      {kind: queues.Receive},
		"insert\n into `Tasks` (Id) VALUES ('')":                              {touched: tasks},
		"INSERT OR IGNORE INTO TASKS (Id) VALUES ('')":                        {touched: tasks},
		"INSERT OR UPDATE INTO Tasks (Id) VALUES ('')":                        {code: codes.InvalidArgument},
		"update tasks SET Payload = b'' WHERE TRUE":                           {code: codes.InvalidArgument},
		"DELETE FROM Other WHERE Id IN (SELECT Id FROM RECEIVE_Tasks())":      {code: codes.InvalidArgument},
		"INSERT INTO Other (x) SELECT 1 FROM RENEWLEASE_Tasks(a => ['x'])":    {code: codes.InvalidArgument},
		"UPDATE Other SET x = 1 WHERE EXISTS (SELECT 1 FROM receive_Tasks())": {code: codes.InvalidArgument},
	} {
		for range 2 { // seen first, and remembered
			kind, touched, err := q.Statement(t.Context(), emptyDB, sql)
			require.Equal(t, want.code, status.Code(err), "%s: %v", sql, err)
			require.Equal(t, want.kind, kind, sql)
			require.Equal(t, want.touched, touched, sql)
		}
	}
}

func BenchmarkPlainStatement(b *testing.B) {
	_, q := newEmpty(b)
	defer q.Close()
	for b.Loop() {
		if _, _, err := q.Statement(b.Context(), emptyDB, "SELECT a, b, c FROM SomeTable WHERE Id = @id AND Other = 'x'"); err != nil {
			b.Fatal(err)
		}
	}
}
