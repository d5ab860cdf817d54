package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// history is what became of a schedule's slots.
type history struct {
	schedule
	name       string
	first, end time.Time // the first slot, and the one that the schedule was turned off before
	ran        map[time.Time][]ranRow
	skipped    []skippedRow
}

type ranRow struct {
	worker string
	late   time.Duration
}

// skippedRow says that the slots between the two were skipped.
type skippedRow struct{ after, before time.Time }

func readHistories(ctx context.Context, client *spanner.Client, found []history) error {
	for i := range found {
		h := &found[i]
		h.ran = map[time.Time][]ranRow{}
		of := map[string]any{"schedule": h.name}
		err := client.Single().Query(ctx, spanner.Statement{
			SQL: "SELECT Slot, Worker, CommittedAt FROM Ran WHERE Schedule = @schedule", Params: of,
		}).Do(func(r *spanner.Row) error {
			var slot, committed time.Time
			var worker string
			err := r.Columns(&slot, &worker, &committed)
			h.ran[slot.UTC()] = append(h.ran[slot.UTC()], ranRow{worker, committed.Sub(slot)})
			return err
		})
		if err != nil {
			return err
		}
		err = client.Single().Query(ctx, spanner.Statement{
			SQL: "SELECT After, Before FROM Skipped WHERE Schedule = @schedule", Params: of,
		}).Do(func(r *spanner.Row) error {
			var s skippedRow
			err := r.Columns(&s.after, &s.before)
			h.skipped = append(h.skipped, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slots are all slots of the schedule, by its expression alone.
func (h history) slots() []time.Time {
	var slots []time.Time
	for slot := h.first.UTC(); slot.Before(h.end); {
		slots = append(slots, slot)
		following, err := next(h.Spec, slot)
		if err != nil {
			break
		}
		slot = following
	}
	return slots
}

// skips counts how often the slot was skipped.
func (h history) skips(slot time.Time) (n int) {
	for _, s := range h.skipped {
		if slot.After(s.after) && slot.Before(s.before) {
			n++
		}
	}
	return n
}

// judge returns an error for every slot that did not get what it should: one run, or, where the schedule skips what was
// missed, no run and one skip.
func judge(found []history) error {
	var errs []error
	for _, h := range found {
		slots := h.slots()
		if len(slots) == 0 {
			errs = append(errs, fmt.Errorf("%s: there was no slot", h.name))
		}
		known := map[time.Time]bool{}
		for _, slot := range slots {
			known[slot] = true
			ran, skipped := len(h.ran[slot]), h.skips(slot)
			if ran+skipped != 1 || h.CatchUp && skipped > 0 {
				errs = append(errs, fmt.Errorf("%s %s: ran %d times, skipped %d times", h.name, slot.Format(time.TimeOnly), ran, skipped))
			}
		}
		for slot := range h.ran {
			if !known[slot] {
				errs = append(errs, fmt.Errorf("%s %s: ran, and is no slot of the schedule", h.name, slot.Format(time.TimeOnly)))
			}
		}
	}
	return errors.Join(errs...)
}
