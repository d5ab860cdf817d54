package front_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// A commit that was sent to the emulator is not given up with the client that sent it: it lands, and whoever asks later is
// told so. A second front stands in for an emulator that takes its time.
func TestCommitOutlivesItsClient(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	inner, innerAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	s, addr := newFront(t, innerAddr, front.Options{})
	r := newRaw(t, addr, db.Name)
	for name, commit := range map[string]func(ctx context.Context, tx []byte) error{
		"in a transaction": func(ctx context.Context, tx []byte) error {
			_, err := r.commit(ctx, tx, insert("in a transaction"))
			return err
		},
		"single use": func(ctx context.Context, _ []byte) error {
			_, err := r.apply(ctx, insert("single use"))
			return err
		},
	} {
		var tx []byte
		if name == "in a transaction" {
			tx = r.hold("by statement")
		}
		sent := inner.Faults().Add(fault.Rule{Method: "Commit", Nth: 1, Do: fault.Hold()})
		ctx, giveUp := context.WithCancel(context.Background())
		committed := background(t, func(context.Context) error { return commit(ctx, tx) })
		require.NoError(t, sent.Wait(r.ctx()), name)
		giveUp()
		requireCode(t, codes.Canceled, <-committed)
		// Time for the news of that to go all the way.
		require.Never(t, func() bool { return r.count("Id = '"+name+"'") != "0" }, 100*time.Millisecond, 10*time.Millisecond, name)

		sent.Release()
		eventually(t, name+": the commit was given up", func() bool { return r.count("Id = '"+name+"'") == "1" })
		eventually(t, name+": the turn is not given back", func() bool { return s.Stats() == front.Stats{} })
		if tx != nil {
			require.NoError(t, commit(r.ctx(), tx), "whoever asks again is told")
			require.Equal(t, "1", r.count("Id = 'by statement'"))
		}
		require.Equal(t, 1, sent.Applied())
	}
}
