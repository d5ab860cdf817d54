package queuetest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// A handler that touches no transaction, with its retries and its dead letters: days of them, in no time.
func TestProcessorInMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := queuetest.New(mails, queuetest.Options{Offset: -time.Hour})
		send(t, m, out(1, "good"), out(2, "bad"), out(3, "twice"))
		calls := make(map[string]int)
		handler := processor.Tx(func(_ context.Context, _ *spanner.ReadWriteTransaction, message *queue.Message) error {
			text := string(message.Payload)
			calls[text]++
			if text == "bad" || (text == "twice" && calls[text] == 1) {
				return errors.New("the mail server says no")
			}
			return nil
		})
		p, err := processor.New(m.Queue(), handler, processor.Config{
			Concurrency: 1,
			MaxAttempts: 5,
			Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(48 * time.Hour)
		stop()
		require.NoError(t, <-ended)

		require.Equal(t, map[string]int{"good": 1, "bad": 5, "twice": 2}, calls)
		queuetest.RequireEmpty(t, m.Queue())
		require.Len(t, m.Dead(), 1)
		require.Equal(t, "bad", string(m.Dead()[0].Message.Payload))
		require.Equal(t, 5, m.Dead()[0].Attempts)
		require.Zero(t, m.Counts().LeasesEnded)
	})
}
