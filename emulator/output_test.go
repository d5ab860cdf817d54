package emulator

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputFindsTheAddressInPieces(t *testing.T) {
	t.Parallel()
	o := newOutput(slog.New(slog.DiscardHandler))
	const text = "WARNING: All log messages before absl\nCloud Spanner Emulator running.\nI0000 2] Server address: localhost:42433"
	for i := range text {
		n, err := o.Write([]byte{text[i]})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.Empty(t, o.address, "more digits may come")
	fmt.Fprint(o, "\r\nServer address: localhost:1\n")
	require.Equal(t, "localhost:42433", <-o.address)
	require.Empty(t, o.address, "the first one counts")
}

func TestOutputKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	o := newOutput(slog.New(slog.DiscardHandler))
	require.Equal(t, "it printed nothing", o.tail())
	for i := range 100 {
		fmt.Fprintf(o, "line %d\n", i)
	}
	fmt.Fprint(o, "no end")
	tail := o.tail()
	require.Contains(t, tail, "\n  line 80\n")
	require.NotContains(t, tail, "line 79\n")
	require.True(t, strings.HasSuffix(tail, "\n  line 99\n  no end"), tail)
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	o := newOutput(slog.New(slog.DiscardHandler))
	for range 1000 {
		fmt.Fprint(o, strings.Repeat("x", 1000))
	}
	require.Equal(t, len("its last lines:\n  ")+longestLine, len(o.tail()))
	fmt.Fprint(o, "\nafter\n")
	require.True(t, strings.HasSuffix(o.tail(), "\n  after"), "the line after it is whole")
}

func TestOutputIsLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := newOutput(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	fmt.Fprint(o, "Cloud Spanner Emulator running.\n")
	require.Contains(t, log.String(), `level=DEBUG msg=emulator line="Cloud Spanner Emulator running."`)
}
