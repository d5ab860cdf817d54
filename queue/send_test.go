package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// commits counts the commits that sends make from here on.
func (w *world) commits() *fault.Handle {
	return w.fault(fault.Rule{Method: "Commit", Tag: "send=" + w.queue.Name(), Do: fault.Delay(0)})
}

func outgoing(ids ...string) []queue.Outgoing {
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
	}
	return out
}

// A message without a time is due by the database's clock, whatever this machine's says; so is one whose time has passed.
func TestSendNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	for name, at := range map[string]time.Time{"no time": {}, "past": time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)} {
		require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{name}, DeliverTime: at}}))
		m := w.receive(1)[0]
		require.Equal(t, spanner.Key{name}, m.Key)
		require.NoError(t, w.ack(m))
	}
}

func TestSendAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	hour := w.later()
	require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{
		{Key: spanner.Key{"an hour"}, DeliverTime: hour},
		{Key: spanner.Key{"another zone"}, DeliverTime: hour.In(time.FixedZone("elsewhere", -5*3600))},
		{Key: spanner.Key{"the last moment"}, DeliverTime: time.Date(9999, 12, 31, 23, 59, 59, 999999789, time.UTC)},
	}))
	require.Equal(t, hour.UTC(), w.stored(spanner.Key{"an hour"}).DeliverTime)
	require.Equal(t, 123456789, w.stored(spanner.Key{"an hour"}).DeliverTime.Nanosecond())
	require.Equal(t, hour.UTC(), w.stored(spanner.Key{"another zone"}).DeliverTime)
	require.Equal(t, 999999789, w.stored(spanner.Key{"the last moment"}).DeliverTime.Nanosecond())
	for m, err := range w.queue.Receive(t.Context(), queue.ReceiveOptions{MaxDuration: time.Second}) {
		t.Fatalf("%v came, %v: nothing is due", m, err)
	}
	// The guard compares nanoseconds: the stored message can be acknowledged.
	require.NoError(t, w.ack(w.stored(spanner.Key{"the last moment"})))
}

func TestSendManyInChunks(t *testing.T) {
	t.Parallel()
	t.Run("by number", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, tasks)
		commits := w.commits()
		require.NoError(t, w.queue.Send(t.Context(), outgoing(names(2001)...)))
		require.Equal(t, 3, commits.Matched())
		require.EqualValues(t, 2001, w.count())
	})
	t.Run("by size", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, tasks)
		commits := w.commits()
		out := outgoing(names(4)...)
		for i := range out {
			out[i].Payload = bytes.Repeat([]byte{byte(i)}, 6<<20) // two fit into 16 MiB
		}
		require.NoError(t, w.queue.Send(t.Context(), out))
		require.Equal(t, 2, commits.Matched())
		require.EqualValues(t, 4, w.count())
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, tasks)
		commits := w.commits()
		require.NoError(t, w.queue.Send(t.Context(), nil))
		require.NoError(t, w.queue.Send(t.Context(), nil, queue.OrIgnore()))
		require.Zero(t, commits.Matched())
	})
}

func TestSendOfATakenKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	all := names(2500)
	w.send(all[1700])
	err := w.queue.Send(t.Context(), outgoing(all...))
	require.ErrorIs(t, err, queue.ErrExists)
	require.Equal(t, codes.AlreadyExists, spanner.ErrCode(err))
	var sendErr *queue.SendError
	require.ErrorAs(t, err, &sendErr)
	require.Equal(t, "Tasks", sendErr.Queue)
	require.Equal(t, 1000, sendErr.Sent)
	require.Equal(t, 2500, sendErr.Of)
	require.ErrorContains(t, err, "1000 of 2500")
	require.EqualValues(t, 1001, w.count(), "the first chunk, and the message that was there; of the second chunk nothing")

	err = w.queue.Send(t.Context(), outgoing("twice", "other", "twice"))
	require.ErrorIs(t, err, queue.ErrExists, "a key twice in one call")
	require.EqualValues(t, 1001, w.count())
}

// What could not be stored is refused before anything is sent, and named.
func TestSendRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	good := queue.Outgoing{Key: spanner.Key{"good"}}
	for says, bad := range map[string]queue.Outgoing{
		"the key has 2 parts":                     {Key: spanner.Key{"a", "b"}},
		"the key has 0 parts":                     {},
		"Id is STRING(64), the given part is a i": {Key: spanner.Key{1}},
		"Id is NOT NULL":                          {Key: spanner.Key{nil}},
		"not valid UTF-8":                         {Key: spanner.Key{"\xff"}},
		"10485760":                                {Key: spanner.Key{"a"}, Payload: make([]byte, 10<<20+1)},
		"years 1 to 9999":                         {Key: spanner.Key{"a"}, DeliverTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		err := w.queue.Send(t.Context(), []queue.Outgoing{good, bad})
		require.ErrorIs(t, err, queue.ErrInvalid)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "message 2 of 2 for queue Tasks")
		_, err = w.queue.SendMutation(bad)
		require.ErrorIs(t, err, queue.ErrInvalid)
		_, err = w.queue.SendStatement(bad)
		require.ErrorIs(t, err, queue.ErrInvalid)
	}
	require.Zero(t, w.count())
}

func TestSendObeysItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	ctx, cancel := context.WithCancel(t.Context())
	h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: fault.Hold()})
	ended := make(chan error, 1)
	go func() { ended <- w.queue.Send(ctx, outgoing("m1")) }()
	waitCtx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	require.NoError(t, h.Wait(waitCtx))
	cancel()
	select {
	case err := <-ended:
		require.Equal(t, codes.Canceled, spanner.ErrCode(err))
	case <-time.After(patience):
		t.Fatal("Send outlives its context")
	}
}

// The two ways to send in a transaction of one's own: with it or not at all.
func TestSendInATransaction(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"mutation", "statement"} {
		for _, at := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/at a time=%v", how, at), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, tasks)
				m := queue.Outgoing{Key: spanner.Key{"m1"}, Payload: []byte{0, 255, '\''}}
				if at {
					m.DeliverTime = w.later()
				}
				send := func(end error) error {
					return w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
						if _, err := tx.Update(ctx, statement("m1")); err != nil {
							return err
						}
						if how == "mutation" {
							mutation, err := w.queue.SendMutation(m)
							if err != nil {
								return err
							}
							if err := tx.BufferWrite([]*spanner.Mutation{mutation}); err != nil {
								return err
							}
							return end
						}
						insert, err := w.queue.SendStatement(m)
						if err != nil {
							return err
						}
						n, err := tx.Update(ctx, insert)
						if err != nil {
							return err
						}
						require.EqualValues(t, 1, n)
						row, err := tx.ReadRow(ctx, "Tasks", m.Key, []string{"Payload"})
						require.NoError(t, err, "later statements see the message")
						var payload []byte
						require.NoError(t, row.Columns(&payload))
						require.Equal(t, m.Payload, payload)
						return end
					})
				}
				require.Error(t, send(context.Canceled))
				require.Zero(t, w.count())
				require.Zero(t, w.effects("m1"))
				require.NoError(t, send(nil))
				there := w.stored(m.Key)
				require.Equal(t, m.Payload, there.Payload)
				if at {
					require.Equal(t, m.DeliverTime.UTC(), there.DeliverTime)
				} else {
					require.Equal(t, m.Payload, w.receive(1)[0].Payload)
				}
				require.Equal(t, codes.AlreadyExists, spanner.ErrCode(send(nil)), "the key is taken")
				require.EqualValues(t, 1, w.effects("m1"))
			})
		}
	}
}
