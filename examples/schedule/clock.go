package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/robfig/cron/v3"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// schedule is the payload of a schedule's message.
type schedule struct {
	Spec    string    `json:"spec"`    // a cron expression, seconds first
	CatchUp bool      `json:"catchUp"` // what was missed is run later; otherwise it is skipped
	Slot    time.Time `json:"slot"`    // the time that the message stands for; after a retry it is due later than that
}

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// next returns the first slot of the cron expression after t.
func next(spec string, t time.Time) (time.Time, error) {
	timing, err := parser.Parse(spec)
	if err != nil {
		return time.Time{}, fmt.Errorf("schedule %q: %w", spec, err)
	}
	slot := timing.Next(t.UTC())
	if slot.IsZero() {
		return slot, fmt.Errorf("schedule %q: there is no such time after %v", spec, t)
	}
	return slot, nil
}

// begin turns a schedule on. Every worker may call it: where the schedule is on already its message is in the queue, and a
// second one of that key is refused. It goes on with the expression that it has: to change it, end the schedule first.
func begin(ctx context.Context, q *queue.Queue, name string, s schedule) error {
	now, err := q.ServerTime(ctx)
	if err != nil {
		return err
	}
	if s.Slot, err = next(s.Spec, now); err != nil {
		return err
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{name}, Payload: payload, DeliverTime: s.Slot}})
	if errors.Is(err, queue.ErrExists) {
		return nil
	}
	return err
}

// end turns a schedule off, and returns the slot that it stopped before. The acknowledgement is one by key alone: whatever
// the slot is that the message stands for, it is the one to remove.
func end(ctx context.Context, client *spanner.Client, name string) (time.Time, error) {
	var s schedule
	_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		row, err := tx.ReadRow(ctx, schedules.Name, spanner.Key{name}, []string{"Payload"})
		if err != nil {
			return err
		}
		var payload spanner.NullJSON
		if err := row.Columns(&payload); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(payload.String()), &s); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.Ack(schedules.Name, spanner.Key{name})})
	})
	return s.Slot, err
}

// clock handles the messages of schedules. In the transaction that acknowledges the message of a slot it sends the run of
// that slot, and the schedule's own message again, due at the next slot. So no worker is in charge, and yet a slot is run
// once: whoever comes second with the same message finds it gone.
type clock struct{ schedules, runs *queue.Queue }

func (c clock) handler() processor.Handler { return processor.Typed(processor.JSON[schedule], c.tick) }

func (c clock) tick(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, s schedule) error {
	slot, err := next(s.Spec, s.Slot)
	if err != nil {
		return err
	}
	now, err := c.schedules.ServerTime(ctx)
	if err != nil {
		return err
	}
	var writes []*spanner.Mutation
	if !s.CatchUp && !slot.After(now) {
		// We are late by a slot or more. The one that was due is run; those after it that have passed are not.
		if slot, err = next(s.Spec, now); err != nil {
			return err
		}
		writes = append(writes, spanner.Insert("Skipped", []string{"Schedule", "After", "Before"}, []any{m.Key[0], s.Slot, slot}))
	}
	run, err := c.runs.SendMutation(queue.Outgoing{Key: spanner.Key{m.Key[0], s.Slot}})
	if err != nil {
		return err
	}
	s.Slot = slot
	payload, err := json.Marshal(s)
	if err != nil {
		return err
	}
	again, err := c.schedules.SendMutation(queue.Outgoing{Key: m.Key, Payload: payload, DeliverTime: slot})
	if err != nil {
		return err
	}
	return tx.BufferWrite(append(writes, run, again))
}
