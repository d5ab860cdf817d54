package docs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/processor/processortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The tests of the guide to testing, block by block.

// remind looks again every hour until the shop has opened.
func remind(open func(time.Time) bool) processor.Handler {
	return processor.Tx(func(_ context.Context, _ *spanner.ReadWriteTransaction, _ *queue.Message) error {
		if !open(time.Now()) {
			return processor.Snooze(time.Hour)
		}
		return nil
	})
}

func TestRemind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(placed, queuetest.Options{}).Queue()
		key := spanner.Key{"o1"}
		require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: key, Payload: []byte(`{}`)}}))
		opens := time.Now().Add(90 * time.Minute)
		h := remind(func(now time.Time) bool { return now.After(opens) })

		require.Equal(t, processor.Snoozed, processortest.WorkOnce(t, q, h, processor.Config{}))
		queuetest.RequireDue(t, q, key, time.Now().Add(time.Hour), time.Minute)

		time.Sleep(2 * time.Hour) // takes no time: the clock here is the test's own
		require.Equal(t, processor.Done, processortest.WorkOnce(t, q, h, processor.Config{}))
		queuetest.RequireEmpty(t, q)
	})
}

func TestGrantTwice(t *testing.T) {
	t.Parallel()
	db, client, q := shop(t)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada", Points: 10}))

	processortest.Twice(t, db, q, handler, processor.Config{}) // the database aborts the first run

	require.Equal(t, int64(10), pointsOf(t, client, "ada"))
}

func TestGrantWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	db, client, q := shop(t)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada", Points: 10}))
	lost := db.Front().Faults().Add(fault.Rule{
		Database: db.Name, // the emulator is shared by all tests of the package
		Method:   "Commit",
		Tag:      "queue=" + placed.Name, // a processor's transactions are tagged so
		Nth:      1,
		Do:       fault.After(codes.DeadlineExceeded, "the commit has landed, and its answer is lost"),
	})

	processortest.Drain(t, q, handler, processor.Config{})

	require.Equal(t, 1, lost.Applied()) // a fault that was not met proves nothing
	require.Equal(t, int64(10), pointsOf(t, client, "ada"))
}

func TestWhatFailsForGood(t *testing.T) {
	t.Parallel()
	_, client, q := shop(t)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada", Points: -1}))
	h := processor.Typed(processor.JSON[order], func(_ context.Context, _ *spanner.ReadWriteTransaction, _ *queue.Message, o order) error {
		if o.Points < 0 {
			return processor.DeadLetter(errors.New("points cannot be taken away"))
		}
		return nil
	})

	got := processortest.Drain(t, q, h, processor.Config{})

	require.EqualValues(t, 1, got[processor.DeadLettered])
	letters, err := q.DeadLetters().List(t.Context(), queue.DeadLetterFilter{Key: spanner.Key{"o1"}}, nil, 1)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "points cannot be taken away", letters[0].Error)
}

// mailer calls a mail server, and notes what it has answered.
func mailer(send func(ctx context.Context, key string) (string, error)) processor.Handler {
	return processor.Call[string]{
		Call: func(ctx context.Context, h *lease.Held) (string, error) {
			return send(ctx, h.DownstreamKey("mail"))
		},
		Settle: func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, id string) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Mails", []string{"OrderId", "MailId"}, []any{m.Key[0], id})})
		},
	}
}

func TestMailIsSentUnderOneKey(t *testing.T) {
	t.Parallel()
	_, client, q := shop(t)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada"}))
	var keys []string
	h := mailer(func(_ context.Context, key string) (string, error) {
		if keys = append(keys, key); len(keys) == 1 {
			return "", processor.Retry(errors.New("no answer"), 0)
		}
		return "mail-1", nil
	})

	outcomes := processortest.DrainAll(t, q, h, processor.Config{}) // waits for the retry

	require.Equal(t, map[processor.Outcome]int64{processor.Retried: 1, processor.Done: 1}, outcomes)
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1])
}

// shop is a database with an order's tables, and its queue.
func shop(t *testing.T) (*emulatortest.DB, *spanner.Client, *queue.Queue) {
	t.Helper()
	db := emulatortest.Database(t, append(tables,
		`CREATE TABLE Mails (OrderId STRING(36) NOT NULL, MailId STRING(36) NOT NULL) PRIMARY KEY (OrderId)`)...)
	require.NoError(t, createQueue(t.Context(), adminClient(t, db), db.Name))
	client := db.Client(t)
	openAccount(t, client, "ada")
	q, err := queue.New(client, placed)
	require.NoError(t, err)
	return db, client, q
}
