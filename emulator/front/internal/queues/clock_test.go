package queues_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func TestClockOffset(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			t.Parallel()
			const lease = time.Second
			b := newBench(t, queues.Options{ClockOffset: offset, LeaseLength: lease}, taskQueue)
			server := func() time.Time { return time.Now().Add(offset) }
			s := b.receive("")
			begun := server()
			b.dml("INSERT INTO Tasks (Id, Payload) VALUES ('dml', b'')")
			require.NoError(t, b.commit(send("mutation", "")))
			for range 2 {
				m := s.message(t)
				require.WithinRange(t, m.due, begun.Add(-time.Millisecond), server())
				require.WithinRange(t, m.expires, begun.Add(lease), server().Add(lease))
				renewed := b.renew(m.lease)
				require.Len(t, renewed, 1)
				require.WithinRange(t, renewed[0].expires, begun.Add(lease), server().Add(lease))
				require.NoError(t, b.commit(ack(m.id)))
			}
			at := server().Add(300 * time.Millisecond)
			require.NoError(t, b.commit(sendAt("later", at)))
			require.Equal(t, "later", s.message(t).id)
			require.False(t, server().Before(at))
			require.Less(t, server().Sub(at), 5*time.Second)

			sql := b.queues.RewriteClock("SELECT 'CURRENT_TIMESTAMP', CURRENT_TIMESTAMP()")
			require.Equal(t, fmt.Sprintf("SELECT 'CURRENT_TIMESTAMP', TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL %d NANOSECOND)", offset), sql)
		})
	}
}

func TestNoClockOffset(t *testing.T) {
	t.Parallel()
	_, q := newEmpty(t)
	defer q.Close()
	require.Equal(t, "SELECT CURRENT_TIMESTAMP()", q.RewriteClock("SELECT CURRENT_TIMESTAMP()"))
}

// A transaction that keeps its turn does not keep receivers from messages, and one that commits late is not overlooked.
func TestReceiversDoNotWaitForOthersTurns(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	require.NoError(t, b.commit(send("before", "")))
	// An INSERT that is stamped now, and commits only when later ones have been delivered.
	held := b.begin()
	b.run(held, "INSERT INTO Tasks (Id, Payload) VALUES ('slow', b'')")
	s := b.receive("")
	require.Equal(t, "before", s.message(t).id)
	s.silent(t, 700*time.Millisecond) // longer than the log's slack
	b.end(held, []string{"tasks"})
	require.Equal(t, "slow", s.message(t).id)

	held = b.begin()
	b.run(held, "INSERT INTO Tasks (Id, Payload) VALUES ('slower', b'')")
	b.queues.Committed(b.name, []string{"tasks"}) // a commit of somebody's that this reader looks for, outside of a turn
	s.silent(t, 700*time.Millisecond)
	b.queues.Committed(b.name, []string{"tasks"})
	s.silent(t, 50*time.Millisecond)
	b.end(held, []string{"tasks"})
	require.Equal(t, "slower", s.message(t).id)
}
