package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

func TestMain(m *testing.M) {
	// The faults need a front of this process.
	if err := os.Unsetenv("SPANNER_EMULATOR_HOST"); err != nil {
		panic(err)
	}
	emulatortest.Main(m) // which fails when a goroutine is left
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func TestNothingIsLostAndNothingTakesEffectTwice(t *testing.T) {
	t.Parallel()
	args := []string{"-orders", "300"}
	if os.Getenv("SPANQUEUE_LONG") != "" {
		args = nil // all of them
	}
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, &out, &errOut)
	t.Log(out.String())
	require.Zero(t, code, errOut.String())
	require.Equal(t, "0 lost, 0 twice", lastLine(out.String()))
}

func TestInterruptedInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errOut bytes.Buffer
	out := &watched{mark: " answered ", seen: cancel}
	require.Equal(t, exitInterrupted, run(ctx, nil, out, &errOut), errOut.String())
	require.Equal(t, "interrupted; everything has ended", lastLine(out.String()))
	require.NotContains(t, out.String(), " lost, ")
	// That everything has ended is seen by TestMain.
}

// watched is an output that calls seen when the mark is written.
type watched struct {
	bytes.Buffer
	mark string
	seen func()
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.mark) {
		w.seen()
	}
	return w.Buffer.Write(b)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-orders 199":   "-orders is 199, it must be from 200 to 1000",
		"-orders 1001":  "-orders is 1001, it must be from 200 to 1000",
		"-workers 0":    "-workers is 0, it must be from 1 to 16",
		"-workers 17":   "-workers is 17, it must be from 1 to 16",
		"-seed x":       "invalid value",
		"unprotected":   `there are no arguments, found "unprotected"`,
		"-unprotectet":  "flag provided but not defined",
		"-orders 500 5": `there are no arguments, found "5"`,
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), strings.Fields(args), &out, &errOut), args)
		require.Contains(t, errOut.String(), want)
		require.Empty(t, out.String())
	}
}

// broken is a worker that cannot work.
type broken struct{}

func (broken) Run(context.Context) error { return errors.New("no hands") }

func (broken) figures() figures { return figures{} }

func TestAWorkerThatEndsByItselfEndsTheRun(t *testing.T) {
	t.Parallel()
	o, err := parseOptions(nil, io.Discard)
	require.NoError(t, err)
	hire := func(*database, *slog.Logger) (worker, error) { return broken{}, nil }
	_, err = play(t.Context(), o, hire, io.Discard, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "a worker has ended by itself")
	require.ErrorContains(t, err, "no hands")
}

func TestUnprotectedWorkersGrantTwice(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"-unprotected", "-orders", "200"}, &out, &errOut)
	t.Log(out.String())
	require.Zero(t, code, errOut.String())
	found := regexp.MustCompile(`^0 lost, (\d+) twice$`).FindStringSubmatch(lastLine(out.String()))
	require.NotNil(t, found)
	twice, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	require.Positive(t, twice)
}

// withoutReceipts is the handler as it would be if one message were one operation.
func withoutReceipts(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		return err
	}
	if flaw := g.flaw(); flaw != "" {
		return write(tx, refusedAnswer(g, flaw))
	}
	balance, err := addPoints(ctx, tx, g)
	if spanner.ErrCode(err) == codes.OutOfRange {
		return write(tx, refusedAnswer(g, "more than the balance can hold"))
	}
	if err != nil {
		return err
	}
	return write(tx, grantedAnswer(g, balance))
}

// The check can fail, and the acknowledgement alone does what it promises: without receipts only those operations are
// granted twice that were sent twice.
func TestWithoutReceiptsTheSameCheckSeesDoubles(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{"-orders", "200"}, io.Discard)
	require.NoError(t, err)
	r, err := play(t.Context(), o, handling(func(*idempotency.Store) processor.Handler { return processor.Tx(withoutReceipts) }), io.Discard, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Positive(t, r.verdict.twice)
	require.Zero(t, r.verdict.twiceSentOnce)
	require.Zero(t, r.verdict.lost)

	var out bytes.Buffer
	require.Equal(t, exitBad, r.report(&out))
	require.Equal(t, "0 lost, "+strconv.Itoa(r.verdict.twice)+" twice", lastLine(out.String()))
	require.Contains(t, out.String(), "the balance is")
}
