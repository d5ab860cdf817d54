package queue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

func TestOrIgnorePassesTheSameMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("m1")
	before := w.stored(spanner.Key{"m1"})
	again := outgoing("m0", "m1", "m2")
	again[1].DeliverTime = w.later()
	require.NoError(t, w.queue.Send(t.Context(), again, queue.OrIgnore()))
	require.Equal(t, before.DeliverTime, w.stored(spanner.Key{"m1"}).DeliverTime, "nothing is sent, its time is not moved")
	require.EqualValues(t, 3, w.count())
}

func TestOrIgnoreTellsAnotherMessageOfTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("m1", "m3")
	out := outgoing("m0", "m1", "m2", "m3")
	out[1].Payload, out[3].Payload = []byte("another"), nil
	err := w.queue.Send(t.Context(), out, queue.OrIgnore())
	require.ErrorIs(t, err, queue.ErrMismatch)
	require.NotErrorIs(t, err, queue.ErrExists)
	for _, says := range []string{"Tasks", `"m1"`, `"m3"`} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), `"m2"`)
	require.EqualValues(t, 4, w.count(), "the others are sent")
	require.Equal(t, "payload of m1", string(w.stored(spanner.Key{"m1"}).Payload))
}

func TestOrIgnoreMeetsItselfInOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	require.NoError(t, w.queue.Send(t.Context(), outgoing("m1", "m1"), queue.OrIgnore()))
	require.EqualValues(t, 1, w.count())
	out := outgoing("m2", "m2")
	out[1].Payload = []byte("another")
	require.ErrorIs(t, w.queue.Send(t.Context(), out, queue.OrIgnore()), queue.ErrMismatch)
	require.Equal(t, "payload of m2", string(w.stored(spanner.Key{"m2"}).Payload), "the first one counts")
}

// A later chunk that fails does not hide what an earlier one found.
func TestOrIgnoreTellsMismatchesAndAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("m00000")
	out := outgoing(names(1500)...)
	out[0].Payload = []byte("another")
	h := w.fault(fault.Rule{Method: "Commit", Tag: "send=Tasks", Nth: 2, Do: fault.Before(codes.PermissionDenied, "no more")})
	err := w.queue.Send(t.Context(), out, queue.OrIgnore())
	require.Equal(t, 1, h.Applied())
	require.ErrorIs(t, err, queue.ErrMismatch)
	var sendErr *queue.SendError
	require.ErrorAs(t, err, &sendErr)
	require.Equal(t, 1000, sendErr.Sent)
	require.EqualValues(t, 1000, w.count())
}

// JSON is compared as the database holds it.
func TestOrIgnoreComparesJSONByValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, schema.Queue{Name: "J", KeyColumns: tasks.KeyColumns, Payload: schema.JSON()})
	send := func(text string) error {
		return w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"m1"}, Payload: []byte(text)}}, queue.OrIgnore())
	}
	const first = `{"b": [1e2, 1.10, -0, "\u00e9\/"], "a": 9007199254740993}`
	require.NoError(t, send(first))
	require.NotEqual(t, first, string(w.stored(spanner.Key{"m1"}).Payload), "the database writes it in a form of its own")
	require.NoError(t, send(first))
	require.NoError(t, send(`{"a":9007199254740993,"b":[100.0,1.1,0,"é/"]}`))
	require.ErrorIs(t, send(`{"a":9007199254740992,"b":[100.0,1.1,0,"é/"]}`), queue.ErrMismatch)
	require.ErrorIs(t, send(`{"a":9007199254740993,"b":[1.1,100.0,0,"é/"]}`), queue.ErrMismatch)
}

// Equal times are one key, wherever their clocks stand.
func TestOrIgnoreKnowsATimeInEveryZone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, schema.Queue{Name: "Slots", KeyColumns: []schema.Column{{Name: "At", Type: schema.Timestamp()}}, Payload: schema.Bytes(10)})
	at := time.Date(2026, 10, 25, 2, 30, 0, 789, time.UTC)
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 7200), time.FixedZone("west", -7200)} {
		require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{at.In(zone)}}}, queue.OrIgnore()))
	}
	require.EqualValues(t, 1, w.count())
}

// Producers that know nothing of each other: one message, and no error.
func TestOrIgnoreAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	var producers errgroup.Group
	for range 8 {
		producers.Go(func() error { return w.queue.Send(t.Context(), outgoing("m1", "m2"), queue.OrIgnore()) })
	}
	require.NoError(t, producers.Wait())
	require.EqualValues(t, 2, w.count())
}

// What is read before it is written is locked until the commit, exclusively, so that two who do the same wait for each other
// and neither has to begin anew.
func TestReadsBeforeWritesAreExclusive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	locks := w.fault(fault.Rule{Method: "StreamingRead", Do: fault.Delay(0), Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetLockHint() == spannerpb.ReadRequest_LOCK_HINT_EXCLUSIVE
	}})
	require.NoError(t, w.queue.Send(t.Context(), outgoing("m1"), queue.OrIgnore()))
	require.Equal(t, 1, locks.Matched())
	_, err := w.ackWith(w.receive(1))
	require.NoError(t, err)
	require.Equal(t, 2, locks.Matched())
	l := w.dead("m1")
	before := locks.Matched()
	require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt))
	require.Equal(t, before+1, locks.Matched())
}

// A send whose answer was lost is sent again with OrIgnore: it succeeds either way.
func TestOrIgnoreAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"it had landed":     fault.After(codes.Unknown, "broken"),
		"it had not landed": fault.Before(codes.Unknown, "broken"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: action})
			var sendErr *queue.SendError
			require.True(t, errors.As(w.queue.Send(t.Context(), outgoing("m1")), &sendErr))
			require.Equal(t, codes.Unknown, spanner.ErrCode(sendErr))
			require.True(t, strings.Contains(sendErr.Error(), "0 of 1"))
			require.Equal(t, 1, h.Applied())
			require.NoError(t, w.queue.Send(t.Context(), outgoing("m1"), queue.OrIgnore()))
			require.EqualValues(t, 1, w.count())
		})
	}
	t.Run("it had landed, and the client runs it again", func(t *testing.T) {
		t.Parallel()
		for _, opts := range [][]queue.SendOption{nil, {queue.OrIgnore()}} {
			w := newWorld(t, tasks)
			h := w.fault(fault.Rule{Method: "Commit", Nth: 1,
				Do: fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")})
			err := w.queue.Send(t.Context(), outgoing("m1"), opts...)
			require.Equal(t, 1, h.Applied())
			require.Equal(t, opts == nil, errors.Is(err, queue.ErrExists), "%v", err)
			if opts != nil {
				require.NoError(t, err)
			}
			require.EqualValues(t, 1, w.count())
		}
	})
}
