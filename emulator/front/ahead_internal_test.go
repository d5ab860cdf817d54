package front

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
)

func TestReadAhead(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	part := func(token string) *spannerpb.PartialResultSet {
		return &spannerpb.PartialResultSet{ResumeToken: []byte(token)}
	}
	reading := func(err error) func(context.Context, func(*spannerpb.PartialResultSet) error) error {
		return func(_ context.Context, take func(*spannerpb.PartialResultSet) error) error {
			for _, token := range []string{"a", "b", "c"} {
				if take(part(token)) != nil {
					return nil
				}
			}
			return err
		}
	}
	var sent string
	send := func(m *spannerpb.PartialResultSet) error {
		sent += string(m.GetResumeToken())
		return nil
	}
	require.NoError(t, readAhead(t.Context(), reading(nil), send))
	require.Equal(t, "abc", sent)

	sent = ""
	require.Equal(t, failed, readAhead(t.Context(), reading(failed), send))
	require.Equal(t, "abc", sent, "what came before the error is sent before it")

	// All is read although nothing is sent yet.
	read := make(chan struct{})
	require.NoError(t, readAhead(t.Context(), func(ctx context.Context, take func(*spannerpb.PartialResultSet) error) error {
		defer close(read)
		return reading(nil)(ctx, take)
	}, func(*spannerpb.PartialResultSet) error { <-read; return nil }))

	// A client that is gone ends the reading.
	gone := make(chan struct{})
	require.NoError(t, readAhead(t.Context(), func(_ context.Context, take func(*spannerpb.PartialResultSet) error) error {
		for take(part("a")) == nil {
		}
		close(gone)
		return failed
	}, func(*spannerpb.PartialResultSet) error { return failed }))
	<-gone

	require.PanicsWithValue(t, "wrong", func() {
		defer func() {
			text := recover().(string)
			require.Contains(t, text, "TestReadAhead", "it has the reader's stack")
			panic(text[:len("wrong")])
		}()
		_ = readAhead(t.Context(), func(context.Context, func(*spannerpb.PartialResultSet) error) error { panic("wrong") }, send)
	})
}
