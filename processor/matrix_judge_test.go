package processor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/spanqueue/spanqueue/processor"
)

// judge says what of the promise does not hold.
func (c *cell) judge(ctx context.Context, w *cellWork, db *cellDatabase, plan plan) error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	s, err := db.state(ctx)
	if err != nil {
		return err
	}
	scene := c.site.scene
	dead := 0
	for i := range plan.messages {
		id, want := fmt.Sprint("m", i), "1"
		switch {
		case id != firstMessage:
		case scene.dies:
			want, dead = "", 1
		case scene.sends:
			want = "2"
		}
		if got := s.effects[id]; got != want {
			add("the effect of %s has happened %q times, want %q", id, got, want)
		}
		delete(s.effects, id)
	}
	if len(s.effects) > 0 {
		add("effects of nothing: %v", s.effects)
	}
	if s.left > 0 {
		add("%d messages are in the queue", s.left)
	}
	if s.dead != dead {
		add("there are %d dead letters, want %d", s.dead, dead)
	}

	f := w.Figures()
	if got, own := f.Deliveries[processor.Retried], w.failures.Load(); got > own && !c.blames() {
		add("the handler was blamed %d times, and has failed %d times", got, own)
	}
	if got := f.Deliveries[processor.DeadLettered]; got > int64(dead) {
		add("%d deliveries are labelled dead-lettered", got)
	}
	if f.Receiver.InHand > 0 || f.Receiver.Waiting > 0 {
		add("after Run %d messages are in hand and %d wait", f.Receiver.InHand, f.Receiver.Waiting)
	}
	if len(wrong) > 0 {
		add("%+v", f)
	}
	return errors.Join(wrong...)
}
