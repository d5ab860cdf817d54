package processor_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

var jobs = schema.Queue{
	Name:       "Jobs",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}},
	Payload:    schema.Type{Kind: schema.KindBytes, Length: schema.Max},
}

// withoutTables is a queue without the tables for attempts.
type withoutTables struct{ *queuetest.Memory }

func (withoutTables) CheckLedger(context.Context) error { return queuetest.Code(codes.NotFound) }

// A Run that returns at once since a table is missing does so although its line is not taken.
func TestLoggerThatBlocksDoesNotHideAMissingTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		defer close(until)
		q := queue.FromBackend(withoutTables{queuetest.New(jobs, queuetest.Options{})})
		p, err := processor.New(q, processor.Tx(addOne), processor.Config{Logger: slog.New(blocked{until})})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		select {
		case err := <-ended:
			require.Equal(t, codes.NotFound, spanner.ErrCode(err))
		case <-time.After(time.Minute):
			require.Fail(t, "Run waits for its logger")
		}
	})
}

// The receiver's lines and the processor's wait together for a logger that blocks: it stretches a stop by a second, not by
// two.
func TestLoggerThatBlocksStretchesAStopOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		defer close(until)
		m := queuetest.New(jobs, queuetest.Options{})
		m.Nth(queuetest.OpReceive, 1, queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}) // which the receiver logs
		failed := make(chan struct{}, 1)
		p, err := processor.New(m.Queue(), processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
			failed <- struct{}{}
			return errors.New("first") // which the processor logs
		}), processor.Config{MaxAttempts: -1, Logger: slog.New(blocked{until})})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		require.NoError(t, m.Queue().Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{int64(1)}, Payload: []byte("work")}}))
		<-failed
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, <-ended)
		require.Equal(t, time.Second, time.Since(begun))
	})
}
