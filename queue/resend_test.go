package queue_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// later is an hour from now by the database's clock, with digits down to the nanosecond.
func (w *world) later() time.Time {
	w.t.Helper()
	now, err := w.queue.ServerTime(w.t.Context())
	require.NoError(w.t, err)
	return now.Add(time.Hour).Truncate(time.Second).Add(123456789)
}

// resend sends the message again in a transaction of its own, with an effect beside it, and returns how often the
// function ran.
func (w *world) resend(m *queue.Message, at time.Time, payload []byte) (runs int, err error) {
	err = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		if err := w.queue.Resend(ctx, tx, m, at, payload); err != nil {
			return err
		}
		_, err := tx.Update(ctx, statement(m.Key[0].(string)))
		return err
	})
	return runs, err
}

func TestResendMovesTheMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	for id, payload := range map[string][]byte{"keeps its payload": nil, "has a new payload": []byte("step 2"), "has an empty payload": {}} {
		m := w.one(id)
		at := w.later()
		_, err := w.resend(m, at, payload)
		require.NoError(t, err)
		there := w.stored(m.Key)
		require.Equal(t, at.UTC(), there.DeliverTime, "to the nanosecond")
		if payload == nil {
			payload = m.Payload
		}
		require.Equal(t, string(payload), string(there.Payload))
		require.EqualValues(t, 1, w.effects(id))
	}
	require.EqualValues(t, 3, w.count())
}

func TestResendRefusesATimeThatTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	for name, at := range map[string]time.Time{
		"the message's own":      m.DeliverTime,
		"in another zone":        m.DeliverTime.In(time.FixedZone("elsewhere", 3600)),
		"none":                   {},
		"one that is not stored": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			require.ErrorIs(t, w.queue.Resend(ctx, tx, m, at, nil), queue.ErrInvalid, name)
			_, err := tx.Update(ctx, statement("m1"))
			return err
		})
		requirePoisoned(t, err)
	}
	require.Zero(t, w.effects("m1"))
	require.Equal(t, m.DeliverTime, w.stored(m.Key).DeliverTime)
}

func TestResendOfSomebodyElsesMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	require.NoError(t, w.ack(m))
	_, err := w.resend(m, w.later(), nil)
	requireNotHeld(t, err)
	require.Zero(t, w.count(), "a message that was acknowledged is not raised from the dead")
	require.Zero(t, w.effects("m1"))
}

// Whatever becomes of the commit's answer, there is one message and one effect.
func TestResendAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action fault.Action
		runs   int
		err    error // of the transaction
	}{
		"stream reset: the client runs it again": {streamReset(), 2, queue.ErrNotHeld},
		"unavailable: the client asks again":     {fault.After(codes.Unavailable, "broken"), 1, nil},
		"aborted before the commit":              {fault.Abort(), 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			m := w.one("m1")
			at := w.later()
			h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: c.action})
			runs, err := w.resend(m, at, []byte("again"))
			require.ErrorIs(t, err, c.err)
			require.Equal(t, 1, h.Applied())
			require.GreaterOrEqual(t, runs, c.runs)
			require.EqualValues(t, 1, w.count())
			require.EqualValues(t, 1, w.effects("m1"))
			require.Equal(t, at.UTC(), w.stored(m.Key).DeliverTime)
		})
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	probe := func() queue.Presence {
		p, err := w.queue.Probe(t.Context(), m)
		require.NoError(t, err)
		return p
	}
	require.Equal(t, queue.Present, probe())
	_, err := w.resend(m, w.later(), nil)
	require.NoError(t, err)
	require.Equal(t, queue.Moved, probe())
	require.NoError(t, w.ack(w.stored(m.Key)))
	require.Equal(t, queue.Gone, probe())
}

// A queue or database that is not there is no message that is gone: taking it for one would lose the message.
func TestProbeOfNoQueueIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	elsewhere := tasks
	elsewhere.Name = "Nowhere"
	q, err := queue.New(w.client, elsewhere)
	require.NoError(t, err)
	m := &queue.Message{Key: spanner.Key{"m1"}, DeliverTime: time.Now()}
	_, err = q.Probe(t.Context(), m)
	require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	require.ErrorContains(t, err, "Nowhere")
}
