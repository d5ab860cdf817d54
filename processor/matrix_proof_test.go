package processor_test

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// The judge of the cells sees what it is there to see.
func TestMatrixJudgeSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	b := l.emulators[0]
	db, err := b.database(t.Context())
	require.NoError(t, err)
	client, err := spanner.NewClientWithConfig(t.Context(), db.name, spanner.ClientConfig{DisableNativeMetrics: true}, b.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	q, err := queue.New(client, testQueue, queue.LeaseLength(matrixLease))
	require.NoError(t, err)

	c := &cell{kind: kindTx, fault: matrixFaults[0]}
	plan := plan{messages: 3, concurrency: 1}
	w := &cellWork{fault: new(fault.Set).Add(fault.Rule{Do: fault.Abort()})}
	w.Processor, err = processor.New(q, c.handler(w), processor.Config{})
	require.NoError(t, err)

	effects := func(n map[string]int64) {
		var rows []*spanner.Mutation
		for id, n := range n {
			rows = append(rows, spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{id, n}))
		}
		_, err := client.Apply(t.Context(), rows)
		require.NoError(t, err)
	}
	judge := func() error { return c.judge(t.Context(), w, db, plan) }

	effects(map[string]int64{"m0": 1, "m1": 1, "m2": 1})
	require.NoError(t, judge())
	effects(map[string]int64{"m1": 2})
	require.ErrorContains(t, judge(), `the effect of m1 has happened "2" times`)
	effects(map[string]int64{"m1": 1, "m7": 1})
	require.ErrorContains(t, judge(), "effects of nothing: map[m7:1]")
	_, err = client.Apply(t.Context(), []*spanner.Mutation{
		spanner.Delete("Effects", spanner.Key{"m7"}), spanner.Delete("Effects", spanner.Key{"m2"})})
	require.NoError(t, err)
	require.ErrorContains(t, judge(), `the effect of m2 has happened "" times`)
	effects(map[string]int64{"m2": 1})
	require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"m2"}}}))
	require.ErrorContains(t, judge(), "1 messages are in the queue")
}

// A cell whose fault finds nothing to be applied to fails, however well everything else goes.
func TestMatrixFailsWithoutItsFault(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	c := &cell{kind: kindTx, fault: matrixFaults[0], site: site{name: "nothing", where: fault.Rule{Method: "NoSuchMethod"}}}
	began := time.Now()
	_, err := c.run(t.Context(), l.emulators[0])
	require.ErrorIs(t, err, errNotApplied)
	require.Less(t, time.Since(began), cellLimit/2)
}

// An RPC that no row is about is found.
func TestMatrixSeesRPCsWithoutARow(t *testing.T) {
	t.Parallel()
	var w witness
	look := w.rule().Match
	require.False(t, look(fault.Call{Method: "Commit", Tag: tagWork + ",handler=Q"}), "it only looks on")
	look(fault.Call{Method: "CreateSession"})
	require.Empty(t, w.unmet())
	look(fault.Call{Method: "ExecuteBatchDml", Tag: tagWork, SQL: "UPDATE Effects SET N = 1"})
	look(fault.Call{Method: "Commit", Tag: "something=Q"})
	require.Equal(t, []string{"Commit|something|", "ExecuteBatchDml|queue|UPDATE Effects SET N = 1"}, w.unmet())
}
