package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
)

// bar draws the progress of a report: so many parts are made.
func (t *teller) bar(made int) {
	const width = 30
	full := width * made / t.parts
	fmt.Fprintf(t.out, "  [%s%s] part %d of %d\n", strings.Repeat("=", full), strings.Repeat(" ", width-full), made, t.parts)
}

// wait waits until the report is made.
func (t *teller) wait(ctx context.Context, report string) error {
	for {
		_, err := t.client.Single().ReadRow(ctx, "Reports", spanner.Key{report}, []string{"Report"})
		if !errors.Is(err, spanner.ErrRowNotFound) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check holds what is in the database against what should be there.
func (t *teller) check(ctx context.Context, report string) error {
	row, err := t.client.Single().ReadRow(ctx, "Reports", spanner.Key{report}, []string{"Parts", "Total"})
	if err != nil {
		return err
	}
	var parts, total int64
	if err := row.Columns(&parts, &total); err != nil {
		return err
	}
	want := int64(0)
	for i := 1; i <= t.parts; i++ {
		want += int64(i * i)
	}
	stats, err := t.queue.Stats(ctx)
	if err != nil {
		return err
	}
	if parts != int64(t.parts) || total != want || stats.Ready+stats.Delayed != 0 {
		return fmt.Errorf("it has %d parts and the total %d, want %d and %d; %d messages are left", parts, total, t.parts, want, stats.Ready+stats.Delayed)
	}
	fmt.Fprintf(t.out, "in the database once: %d parts, total %d; nothing is left in the queue\n", parts, total)
	return nil
}
