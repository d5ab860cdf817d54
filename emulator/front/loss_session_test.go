package front_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// background runs f until the test has ended, and gives its result.
func background[T any](t *testing.T, f func(ctx context.Context) T) <-chan T {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result, done := make(chan T, 1), make(chan struct{})
	go func() {
		defer close(done)
		result <- f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return result
}

// A session that is deleted takes its transactions along, whatever they are doing; a commit that is under way decides
// for itself.
func TestSessionsDeletedUnderRunningWork(t *testing.T) {
	t.Parallel()
	type outcome struct {
		code codes.Code // of what was under way
		left string     // rows of T afterwards
	}
	for name, test := range map[string]struct {
		rule   *fault.Rule
		holder bool
		run    func(ctx context.Context, r *raw) error
		want   outcome
	}{
		"a statement that waits": {holder: true, run: func(ctx context.Context, r *raw) error {
			_, err := r.sql(ctx, begins(readWrite), insertSQL("a"))
			return err
		}, want: outcome{codes.Aborted, "1"}},
		"a statement on its way back": {rule: &fault.Rule{Method: "ExecuteSql", SQL: "'a'", Do: fault.HoldReply()}, run: func(ctx context.Context, r *raw) error {
			_, err := r.sql(ctx, byID(r.begin(readWrite)), insertSQL("a"))
			return err
		}, want: outcome{codes.OK, "0"}},
		"a stream on its way back": {rule: &fault.Rule{Method: "StreamingRead", Do: fault.HoldReply()}, run: func(ctx context.Context, r *raw) error {
			_, err := all(r.StreamingRead(ctx, readAll(r, byID(r.hold("a")))))
			return err
		}, want: outcome{codes.OK, "0"}},
		"a batch that waits": {holder: true, run: func(ctx context.Context, r *raw) error {
			_, err := r.batch(ctx, begins(readWrite), insertSQL("a"))
			return err
		}, want: outcome{codes.Aborted, "1"}},
		"a commit before it is sent": {rule: &fault.Rule{Method: "Commit", Do: fault.Hold()}, run: func(ctx context.Context, r *raw) error {
			_, err := r.commit(ctx, r.hold("a"))
			return err
		}, want: outcome{codes.NotFound, "0"}},
		"a commit that waits": {holder: true, run: func(ctx context.Context, r *raw) error {
			_, err := r.commit(ctx, r.begin(readWrite), insert("a"))
			return err
		}, want: outcome{codes.Aborted, "1"}},
		"a commit that has landed": {rule: &fault.Rule{Method: "Commit", Do: fault.HoldReply()}, run: func(ctx context.Context, r *raw) error {
			_, err := r.commit(ctx, r.hold("a"))
			return err
		}, want: outcome{codes.OK, "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := fronted(t, front.Options{})
			other := r.on(r.newSession(nil))
			var h *fault.Handle
			if test.rule != nil {
				h = s.Faults().Add(*test.rule)
			}
			var holder []byte
			if test.holder {
				holder = other.hold("holder")
			}
			result := background(t, func(ctx context.Context) error { return test.run(ctx, r) })
			if h != nil {
				require.NoError(t, h.Wait(r.ctx()))
			} else {
				eventually(t, "it does not wait", func() bool { return s.Stats().Waiting == 1 })
			}
			_, err := r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: r.session})
			require.NoError(t, err)
			if h != nil {
				h.Remove()
			}
			requireCode(t, test.want.code, <-result)
			if holder != nil {
				_, err := other.commit(other.ctx(), holder)
				require.NoError(t, err)
			}
			eventually(t, "a transaction is left open", func() bool { return s.Stats() == front.Stats{} })
			require.Equal(t, test.want.left, other.count("TRUE"))
			other.requireFree()
			_, err = r.sql(r.ctx(), nil, "SELECT 1")
			requireCode(t, codes.NotFound, err)
		})
	}
}

// A receive stream is a query that has begun: it goes on.
func TestSessionDeletedUnderAReceiver(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue)
	c := db.Client(t)
	r := newRaw(t, db.Endpoint(), db.Name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT Id FROM RECEIVE_Tasks(max_duration => '1s')"})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	begin := time.Now()
	_, err = r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: r.session})
	require.NoError(t, err)
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	part, err := stream.Recv()
	require.NoError(t, err)
	require.Len(t, part.GetValues(), 1)
	_, err = all(stream, nil)
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 5*time.Second)
	_, err = all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT Id FROM RECEIVE_Tasks(max_duration => '1s')"}))
	requireCode(t, codes.NotFound, err)
}
