package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// noticeAfter is how long nothing is said while nothing comes.
const noticeAfter = time.Second

var errNoAnswer = errors.New("there was no answer in time")

// firstAnswer runs f, which asks a database for the first time: Google's client waits for half a minute and more, in
// silence. f's context ends when timeout has passed before f has returned; after success it goes on. Once f takes longer
// than a second, w is told what is waited for.
func firstAnswer(ctx context.Context, w io.Writer, database string, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	answered, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		notice, limit := time.NewTimer(noticeAfter), time.NewTimer(timeout)
		defer notice.Stop()
		defer limit.Stop()
		for {
			select {
			case <-answered:
				return
			case <-notice.C:
				fmt.Fprintf(w, "Waiting for %s to answer, for %v at most.\n", whereIs(database), timeout)
			case <-limit.C:
				cancel(errNoAnswer)
				return
			}
		}
	}()
	err := f(ctx)
	close(answered)
	<-told
	if err == nil || context.Cause(ctx) != errNoAnswer {
		return err
	}
	if host := os.Getenv(emulatorHost); host != "" {
		return fmt.Errorf("%s did not answer within %v: is the emulator running? `spanqueue emulator --addr %s` starts one: %w",
			whereIs(database), timeout, host, err)
	}
	return fmt.Errorf("%s did not answer within %v: see whether this machine reaches spanner.googleapis.com and whose credentials "+
		"it has (gcloud auth application-default login), or wait longer with --connect-timeout: %w", whereIs(database), timeout, err)
}

// emulatorHost is the variable by which Google's clients find an emulator.
const emulatorHost = "SPANNER_EMULATOR_HOST"

// whereIs names a database together with where it is looked for.
func whereIs(database string) string {
	if host := os.Getenv(emulatorHost); host != "" {
		return fmt.Sprintf("%s at %s (%s)", database, host, emulatorHost)
	}
	return database
}
