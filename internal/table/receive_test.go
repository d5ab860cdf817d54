package table

import (
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

func TestSendReceiveAck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	for name, q := range map[string]*Queue{"bare": w.bare(Options{LeaseLength: long}), "front": w.front(Options{LeaseLength: long})} {
		before := time.Now()
		w.send(q, "a", "b", "c")
		ds := w.take(q, 3)
		require.Equal(t, []string{"a", "b", "c"}, sortedKeys(ds), name)
		for i, d := range ds {
			require.Equal(t, "payload of "+d.Key[0].(string), string(d.Payload))
			require.NotEmpty(t, d.Token)
			require.WithinRange(t, d.LeaseEnd, before.Add(long-time.Minute), time.Now().Add(long+time.Minute))
			require.Equal(t, &backend.Record{}, d.Record, "nothing came before the first delivery")
			require.Equal(t, i == 2, d.LastOfBatch)
		}
		require.Empty(t, w.takeNow(q), "what is leased is not received again")
		for _, d := range ds {
			require.NoError(t, ack(t.Context(), q, d))
			_, there := w.find(q, d.Key[0].(string))
			require.False(t, there)
		}
	}
}
