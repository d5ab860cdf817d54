package queues_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

const emptyDB = "projects/p/instances/i/databases/d"

func receiveFor(duration string) *spannerpb.ExecuteSqlRequest {
	return &spannerpb.ExecuteSqlRequest{Sql: fmt.Sprintf("SELECT Id FROM RECEIVE_Tasks(max_duration => '%s')", duration)}
}

func newEmpty(t testing.TB) (*emptyStore, *queues.Queues) {
	store := newEmptyStore(t, taskQueue)
	q, err := queues.New(store, queues.Options{})
	require.NoError(t, err)
	return store, q
}

func TestIdleStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := newEmpty(t)
		defer q.Close()
		begun := time.Now()
		var at []time.Duration
		tokens := map[string]bool{}
		err := q.ServeStream(t.Context(), emptyDB, receiveFor("65s"), func(p *spannerpb.PartialResultSet) error {
			at = append(at, time.Since(begun))
			require.Empty(t, p.GetValues())
			require.NotEmpty(t, p.GetResumeToken())
			tokens[string(p.GetResumeToken())] = true
			require.Equal(t, len(at) == 1, p.GetMetadata() != nil, "the metadata comes first, and once")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 20 * time.Second, 40 * time.Second, 60 * time.Second}, at)
		require.Len(t, tokens, 4, "tokens differ")
		require.Equal(t, 65*time.Second, time.Since(begun))
		require.LessOrEqual(t, store.turns.Load(), int64(2), "an idle queue is not polled")
		require.LessOrEqual(t, store.reads.Load(), int64(2))
	})
}

func TestIdleStreamIsWokenOncePerCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := newEmpty(t)
		defer q.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- q.ServeStream(ctx, emptyDB, receiveFor("1h"), func(*spannerpb.PartialResultSet) error { return nil })
		}()
		synctest.Wait()
		before := store.turns.Load()
		_, touched, err := q.Statement(ctx, emptyDB, "INSERT INTO tasks (Id, Payload) VALUES ('a', b'')")
		require.NoError(t, err)
		for range 3 {
			q.Committed(emptyDB, touched)
			synctest.Wait()
		}
		require.Equal(t, before+3, store.turns.Load())
		q.Committed(emptyDB, nil)
		q.Committed("another", touched)
		_, touched, err = q.Statement(ctx, emptyDB, "DELETE FROM Tasks WHERE Id = 'a'")
		require.NoError(t, err)
		q.Committed(emptyDB, touched)
		synctest.Wait()
		require.Equal(t, before+3, store.turns.Load(), "nothing can have been added")
		cancel()
		require.Equal(t, codes.Canceled, status.Code(<-ended))
	})
}

func TestNobodyReadsWithoutReceivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := newEmpty(t)
		defer q.Close()
		require.NoError(t, q.ServeStream(t.Context(), emptyDB, receiveFor("1s"), func(*spannerpb.PartialResultSet) error { return nil }))
		before := store.turns.Load()
		_, touched, err := q.RewriteMutations(t.Context(), emptyDB, []*spannerpb.Mutation{send("a", "x")})
		require.NoError(t, err)
		q.Committed(emptyDB, touched)
		time.Sleep(time.Hour)
		require.Equal(t, before, store.turns.Load())
	})
}

func TestEndOfTheFront(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*queues.Queues)
		code codes.Code
	}{
		"close":            {(*queues.Queues).Close, codes.Unavailable},
		"database dropped": {func(q *queues.Queues) { q.Dropped(emptyDB) }, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, q := newEmpty(t)
				ended := make(chan error)
				go func() {
					ended <- q.ServeStream(t.Context(), emptyDB, receiveFor("1h"), func(*spannerpb.PartialResultSet) error { return nil })
				}()
				synctest.Wait()
				c.end(q)
				require.Equal(t, c.code, status.Code(<-ended))
				q.Close()
				_, _, err := q.Statement(t.Context(), emptyDB, "SELECT 1")
				require.Equal(t, codes.Unavailable, status.Code(err))
			})
		})
	}
}

func TestReceiversWithEqualArgumentsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, q := newEmpty(t)
		defer q.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2001)
		open := func(duration string) {
			go func() {
				ended <- q.ServeStream(ctx, emptyDB, receiveFor(duration), func(*spannerpb.PartialResultSet) error { return nil })
			}()
		}
		refused := func() {
			t.Helper()
			synctest.Wait()
			err := <-ended
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.Empty(t, status.Convert(err).Details(), "with RetryInfo the Go client would hide it")
		}
		for range 1000 {
			open("60s")
		}
		synctest.Wait()
		require.Empty(t, ended)
		open("1 M") // equal, however it is written
		refused()
		for range 1000 {
			open("2m")
		}
		synctest.Wait()
		require.Empty(t, ended)
		open("3m") // the project's limit
		refused()
		cancel()
		for range 2000 {
			require.Equal(t, codes.Canceled, status.Code(<-ended))
		}
		ctx, cancel = context.WithCancel(t.Context())
		open("60s")
		synctest.Wait()
		require.Empty(t, ended, "the places are free again")
		cancel()
		<-ended
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]queues.Options{
		"Options.LeaseLength is -1s":    {LeaseLength: -time.Second},
		"Options.Redelivery[1] is -1ns": {Redelivery: []time.Duration{0, -1}},
	} {
		_, err := queues.New(nil, o)
		require.ErrorContains(t, err, want)
	}
}
