package emulatortest_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// A test of a user's, as docs/emulator.md shows it.
func TestShipOnce(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t,
		`CREATE TABLE Shipped (Id INT64 NOT NULL, Times INT64 NOT NULL) PRIMARY KEY (Id)`)
	client := db.Client(t)

	// The first commit is aborted. The second one lands, but its answer is lost.
	commits := db.Front().Faults()
	aborted := commits.Add(fault.Rule{Method: "Commit", Database: db.Name, Nth: 1, Do: fault.Abort()})
	lost := commits.Add(fault.Rule{Method: "Commit", Database: db.Name, Nth: 1, Do: fault.After(codes.Unavailable, "the answer is lost")})

	runs := 0
	_, err := client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		_, err := tx.Update(ctx, spanner.NewStatement(`INSERT INTO Shipped (Id, Times) VALUES (1, 1)`))
		return err
	})
	require.NoError(t, err, "the client asks again and learns that the commit has landed")
	require.Equal(t, 2, runs)
	require.Equal(t, 1, aborted.Applied()) // a fault that did not happen tests nothing
	require.Equal(t, 1, lost.Applied())
}
