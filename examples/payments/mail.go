package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// mailer sends the mails of the outbox. A mail is delivered at least once,
// always under the key of its message, so the mail server knows it again; that
// it has gone is noted exactly once.
type mailer struct {
	http *http.Client
	url  string
}

func newMailWorker(q *queue.Queue, m mailer, log *slog.Logger) (*processor.Processor, error) {
	return processor.New(q, processor.Call[struct{}]{Call: m.send, Settle: noteMailed}, processor.Config{
		Concurrency: 8,
		Backoff:     processor.Backoff{Min: 200 * time.Millisecond, Max: 2 * time.Second},
		Logger:      log,
	})
}

func (m mailer) send(ctx context.Context, h *lease.Held) (struct{}, error) {
	var r ride
	if err := json.Unmarshal(h.Message().Payload, &r); err != nil {
		return struct{}{}, processor.DeadLetter(err)
	}
	body, err := json.Marshal(map[string]string{
		"to": r.Customer, "trip": r.Trip, "text": fmt.Sprintf("Ride %s is paid: %d cents.", r.ID, r.Cents),
	})
	if err != nil {
		return struct{}{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/mails", bytes.NewReader(body))
	if err != nil {
		return struct{}{}, err
	}
	req.Header.Set("Message-Key", h.DownstreamKey("mail"))
	resp, err := m.http.Do(req)
	if err != nil {
		return struct{}{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return struct{}{}, errors.New("the mail server answered " + resp.Status)
	}
	return struct{}{}, nil
}

// noteMailed counts, so that noting a mail twice would show.
func noteMailed(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ struct{}) error {
	row, err := tx.ReadRow(ctx, "Rides", m.Key, []string{"Mailed"})
	if err != nil {
		return err
	}
	var n int64
	if err := row.Column(0, &n); err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Rides", []string{"RideId", "Mailed"}, []any{m.Key[0], n + 1})})
}
