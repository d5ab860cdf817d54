package queue_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// kinds are the types of key parts with values that are hard on a codec. UUID is not among them: the emulator lacks it.
var kinds = []struct {
	columnType schema.Type
	values     []any
}{
	{schema.Int64(), []any{int64(math.MinInt64), int64(0), int64(math.MaxInt64), nil}},
	{schema.String(40), []any{"", "NULL", "ключ \x00 ✓", `"'` + "`\\", nil}},
	{schema.Bytes(40), []any{[]byte{}, []byte{0, 255, 39}, nil}},
	{schema.Bool(), []any{true, false, nil}},
	{schema.Timestamp(), []any{time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), nil}},
	{schema.Date(), []any{civil.Date{Year: 1, Month: 1, Day: 1}, civil.Date{Year: 9999, Month: 12, Day: 31}, nil}},
	{schema.Numeric(), []any{*big.NewRat(-1, 1_000_000_000), *big.NewRat(5, 2), *new(big.Rat).SetInt64(math.MaxInt64), nil}},
}

// keyed makes a world whose queue has a key of the type, which may be NULL, and a number.
func keyed(t *testing.T, columnType schema.Type, desc bool) *world {
	t.Helper()
	return newWorld(t, schema.Queue{
		Name:       "Keyed",
		KeyColumns: []schema.Column{{Name: "Order", Type: columnType}, {Name: "Num", Type: schema.Int64()}},
		PrimaryKey: []schema.KeyPart{{Column: "Order", Desc: desc}, {Column: "Num"}},
		Payload:    schema.String(schema.Max),
	})
}

// Every way through the library, for keys of every kind, with NULL parts.
func TestKeysOfEveryKind(t *testing.T) {
	t.Parallel()
	for i, kind := range kinds {
		t.Run(kind.columnType.String(), func(t *testing.T) {
			t.Parallel()
			w := keyed(t, kind.columnType, i%2 == 1)
			var keys []spanner.Key
			for _, v := range kind.values {
				for _, num := range []any{int64(7), nil} {
					keys = append(keys, spanner.Key{v, num})
				}
			}
			w.sendKeys(keys)
			messages := w.receive(len(keys))
			require.Equal(t, keyTexts(keys), messageTexts(messages), "each key once, and as it was sent")

			for _, m := range messages {
				w.throughTheWays(m)
			}
			missing, err := w.ackWith(messages)
			require.NoError(t, err)
			require.Len(t, missing, len(messages), "they have all been sent again since")
			missing, err = w.ackWith(w.receive(len(keys)))
			require.NoError(t, err)
			require.Empty(t, missing)
			require.Zero(t, w.count())
		})
	}
}

// sendKeys sends a message for each key, by mutation and by statement in turn.
func (w *world) sendKeys(keys []spanner.Key) {
	w.t.Helper()
	err := w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		for i, key := range keys {
			m := queue.Outgoing{Key: key, Payload: []byte(fmt.Sprint(i))}
			if i%2 == 0 {
				mutation, err := w.queue.SendMutation(m)
				if err != nil {
					return err
				}
				if err := tx.BufferWrite([]*spanner.Mutation{mutation}); err != nil {
					return err
				}
				continue
			}
			insert, err := w.queue.SendStatement(m)
			if err != nil {
				return err
			}
			if _, err := tx.Update(ctx, insert); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(w.t, err)
}

// throughTheWays takes one message through probe, a send that is ignored, a resend, a miss and an ack, and leaves it sent
// anew, due now.
func (w *world) throughTheWays(m *queue.Message) {
	w.t.Helper()
	t := w.t.(*testing.T)
	p, err := w.queue.Probe(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, queue.Present, p, "%v", m)
	same := []queue.Outgoing{{Key: m.Key, Payload: m.Payload}}
	require.NoError(t, w.queue.Send(t.Context(), same, queue.OrIgnore()), "%v", m)
	require.ErrorIs(t, w.queue.Send(t.Context(), same), queue.ErrExists, "%v", m)

	err = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return w.queue.Resend(ctx, tx, m, w.later(), nil)
	})
	require.NoError(t, err, "%v", m)
	p, err = w.queue.Probe(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, queue.Moved, p, "%v", m)
	requireNotHeld(t, w.ack(m))
	require.NoError(t, w.ack(w.stored(m.Key)), "%v", m)
	p, err = w.queue.Probe(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, queue.Gone, p, "%v", m)
	require.NoError(t, w.queue.Send(t.Context(), same), "%v", m)
}

// Without SELECT a batch is acknowledged by one statement, NULL parts and all.
func TestKeysOfEveryKindWithoutSelect(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.columnType.String(), func(t *testing.T) {
			t.Parallel()
			w := keyed(t, kind.columnType, false)
			var keys []spanner.Key
			for _, v := range kind.values {
				keys = append(keys, spanner.Key{v, nil})
			}
			w.sendKeys(keys)
			messages := w.receive(len(keys))
			require.NoError(t, w.ack(messages[0]))
			w.denySelect(messages)
			missing, err := w.ackWith(messages)
			require.NoError(t, err)
			require.Equal(t, messages[:1], missing)
			require.Zero(t, w.count())
		})
	}
}

// ackWith acknowledges the messages in a transaction that does nothing else.
func (w *world) ackWith(ms []*queue.Message) (missing []*queue.Message, err error) {
	err = w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		var err error
		missing, err = w.queue.AckAll(ctx, tx, ms)
		return err
	})
	return missing, err
}

func keyTexts(keys []spanner.Key) map[string]bool {
	texts := make(map[string]bool)
	for _, key := range keys {
		texts[keyText(key)] = true
	}
	return texts
}

func messageTexts(ms []*queue.Message) map[string]bool {
	texts := make(map[string]bool)
	for _, m := range ms {
		texts[keyText(m.Key)] = true
	}
	return texts
}

// The largest key that is taken can be sent, received, given up and redriven, in both kinds of queue.
func TestLargestKey(t *testing.T) {
	t.Parallel()
	d := schema.Queue{
		Name:       "Wide",
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(schema.Max)}},
		Payload:    schema.Bytes(schema.Max),
	}
	key := spanner.Key{strings.Repeat("k", 8000)}
	for name, w := range map[string]*world{
		"queue":       newWorld(t, d),
		"queue table": newWorldOfTable(t, schema.QueueTable{Queue: d, Shards: 2, Priorities: 2}, schema.DeadLetters{Queue: d, Priorities: 2}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.t = t
			require.ErrorIs(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{key[0].(string) + "k"}}}), queue.ErrInvalid)
			w.bury(backend.DeadLetter{Reason: "attempts"}, queue.Outgoing{Key: key})
			letters := w.letters(queue.DeadLetterFilter{})
			require.Len(t, letters, 1)
			require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), letters[0].Key, letters[0].DeadAt))
			for m, err := range w.queue.Receive(t.Context(), queue.ReceiveOptions{}) {
				require.NoError(t, err)
				require.Equal(t, key, m.Key)
				break
			}
		})
	}
}
