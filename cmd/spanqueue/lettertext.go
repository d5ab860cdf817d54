package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// A dead letter is written as its key and its time of death: ["alice",7]@2026-11-30T16:13:10.767808Z. The time may be left
// out where the key has one letter only.

func formatLetter(key spanner.Key, deadAt time.Time) string {
	return formatKey(key) + "@" + deadAt.UTC().Format(time.RFC3339Nano)
}

// parseLetter reads the name of a letter. The time is zero if none is given.
func parseLetter(q schema.Queue, text string) (key spanner.Key, deadAt time.Time, err error) {
	if i := strings.LastIndexByte(text, '@'); i >= 0 { // a key may have an @ too
		if at, err := time.Parse(time.RFC3339Nano, text[i+1:]); err == nil {
			text, deadAt = text[:i], at
		}
	}
	key, err = parseKey(q, text)
	return key, deadAt, err
}

// findLetter returns the letter that the text names, without its payload where the time had to be looked up.
func findLetter(ctx context.Context, q *queue.Queue, text string) (key spanner.Key, deadAt time.Time, err error) {
	key, deadAt, err = parseLetter(q.Definition(), text)
	if err != nil || !deadAt.IsZero() {
		return key, deadAt, err
	}
	const shown = 10
	letters, err := q.DeadLetters().List(ctx, queue.DeadLetterFilter{Key: key}, nil, shown)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case len(letters) == 0:
		return nil, time.Time{}, fmt.Errorf("%w: none has the key %s", queue.ErrNoDeadLetter, text)
	case len(letters) > 1:
		names := make([]string, len(letters))
		for i, l := range letters {
			names[i] = formatLetter(l.Key, l.DeadAt)
		}
		return nil, time.Time{}, fmt.Errorf("the key %s has died more than once; say which letter is meant:\n  %s", text, strings.Join(names, "\n  "))
	}
	return letters[0].Key, letters[0].DeadAt, nil
}
