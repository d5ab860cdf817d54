package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// lostAnswers are the ways in which the answer to one Commit gets lost, after
// it landed or before. Those with all set are tried at every kind of commit:
// they stand for what the client does about the others.
var lostAnswers = []struct {
	name string
	do   fault.Action
	all  bool
}{
	{"landed, UNAVAILABLE", fault.After(codes.Unavailable, "away"), false},
	{"landed, DEADLINE_EXCEEDED", fault.After(codes.DeadlineExceeded, "too late"), false},
	{"landed, CANCELED", fault.After(codes.Canceled, "cancelled"), false},
	{"landed, INTERNAL", fault.After(codes.Internal, "broken"), false},
	{"landed, INTERNAL RST_STREAM", fault.After(codes.Internal, "stream terminated by RST_STREAM"), true},
	{"landed, UNKNOWN", fault.After(codes.Unknown, "unknown"), true},
	{"landed, ABORTED", fault.After(codes.Aborted, "aborted"), false},
	{"landed, ALREADY_EXISTS", fault.After(codes.AlreadyExists, "as if the first try had stuck"), true},
	{"landed, and the server forgot", fault.Forget(), true},
	{"landed, no answer", fault.Drop(), true},
	{"landed, connection cut", fault.CutReply(), true},
	{"not landed, UNAVAILABLE", fault.Before(codes.Unavailable, "away"), false},
	{"not landed, DEADLINE_EXCEEDED", fault.Before(codes.DeadlineExceeded, "too late"), false},
	{"not landed, INTERNAL", fault.Before(codes.Internal, "broken"), false},
	{"not landed, INTERNAL RST_STREAM", fault.Before(codes.Internal, "stream terminated by RST_STREAM"), true},
	{"not landed, UNKNOWN", fault.Before(codes.Unknown, "unknown"), true},
	{"not landed, ABORTED", fault.Abort(), false},
	{"not landed, NOT_FOUND", fault.Before(codes.NotFound, "Transaction not found"), false},
	{"not landed, connection cut", fault.Cut(), false},
}

// F03: a commit of unknown outcome is found out before anything is run again.
func TestLostAnswerToDo(t *testing.T) {
	t.Parallel()
	for _, c := range lostAnswers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{CommitTimeout: time.Second})
			lost := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: c.do})
			receipt, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{Code: 1}))
			require.NoError(t, err)
			require.Equal(t, 1, lost.Applied())
			require.False(t, receipt.Replayed, "the effect is this call's own")
			require.EqualValues(t, 1, receipt.Code)
			require.False(t, receipt.Completed.IsZero())
			require.EqualValues(t, 1, b.points(t))
			require.EqualValues(t, 1, b.records(t))
		})
	}
}

func TestLostAnswerToARefusal(t *testing.T) {
	t.Parallel()
	for _, c := range lostAnswers {
		if !c.all {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{CommitTimeout: time.Second})
			lost := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: c.do})
			receipt, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{}, errors.Join(addPoint(ctx, tx), idempotency.Refuse(idempotency.Result{Code: 402}))
			})
			require.NoError(t, err)
			require.Equal(t, 1, lost.Applied())
			require.True(t, receipt.Refused)
			require.False(t, receipt.Replayed)
			require.Zero(t, b.points(t))
			require.EqualValues(t, 1, b.records(t))
		})
	}
}

// Each commit of an operation in steps loses its answer in turn: the claim, a
// local step, the intent of a call, its result, the end. No call is made twice.
func TestLostAnswerInSteps(t *testing.T) {
	t.Parallel()
	commits := []fault.Rule{
		{Name: "claim", Tag: "spanqueue-claim", Nth: 1},
		{Name: "local step", Tag: "spanqueue-step", Nth: 1},
		{Name: "intent", Tag: "spanqueue-step", Nth: 2},
		{Name: "result", Tag: "spanqueue-step", Nth: 3},
		{Name: "end", Tag: "spanqueue-step", Nth: 4},
	}
	for _, c := range lostAnswers {
		if !c.all {
			continue
		}
		for _, rule := range commits {
			t.Run(c.name+"/"+rule.Name, func(t *testing.T) {
				t.Parallel()
				b, p := newTrip(t, idempotency.Config{CommitTimeout: time.Second})
				p.outside.AtMostOnce = true
				rule.Method, rule.Do = "Commit", c.do
				lost := b.fault(t, rule)
				receipt, err := p.order(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, lost.Applied())
				require.False(t, receipt.Replayed)
				require.Equal(t, "ride-1 ch_a", string(receipt.Body))
				calls, charges := p.gateway.counts()
				require.Equal(t, 1, calls)
				require.Equal(t, 1, charges)
				id, chargeID := b.rideRow(t)
				require.Equal(t, "ride-1 ch_a", id+" "+chargeID)
			})
		}
	}
}

// No answer, ever: the call ends within its bounds, says that it does not know,
// and the next one finds out.
func TestLostAnswersWithoutEndAreUnresolved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		do     fault.Action
		landed bool
	}{
		{"landed", fault.After(codes.Unknown, "unknown"), true},
		{"not landed", fault.Before(codes.Unknown, "unknown"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{CommitTimeout: time.Second})
			commits := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Do: c.do})
			looks := b.fault(t, fault.Rule{Method: "StreamingRead", Match: looksAtARecord, Do: fault.Before(codes.PermissionDenied, "no reads here")})
			_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
			require.ErrorIs(t, err, idempotency.ErrUnresolved)
			require.Equal(t, codes.Unknown, spanner.ErrCode(err), "what Commit answered is not kept")
			require.Equal(t, 1, commits.Applied())
			require.Equal(t, 1, looks.Applied())
			looks.Remove()
			if !c.landed {
				// The look is answered, but no commit is: bounded.
				_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
				require.ErrorIs(t, err, idempotency.ErrUnresolved)
				require.Equal(t, 1+4, commits.Applied())
			}
			commits.Remove()
			receipt, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
			require.NoError(t, err)
			require.Equal(t, c.landed, receipt.Replayed)
			require.EqualValues(t, 1, b.points(t))
		})
	}
}

// looksAtARecord matches the reads of records outside of transactions.
func looksAtARecord(c fault.Call) bool {
	req, ok := c.Request.(*sppb.ReadRequest)
	return ok && req.Table == "Operations" && req.GetTransaction().GetSingleUse() != nil
}

// The commit is still on its way when the database is asked, and lands while
// the guarded transaction runs again.
func TestLostAnswerOfACommitThatLandsLate(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	land, landed := make(chan struct{}), make(chan error, 1)
	late := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if commit, ok := req.(*sppb.CommitRequest); ok && commit.RequestOptions.GetTransactionTag() == "spanqueue-do" && len(landed) == 0 {
			go func() {
				<-land
				landed <- invoke(context.WithoutCancel(ctx), method, req, new(sppb.CommitResponse), cc)
			}()
			return status.Error(codes.DeadlineExceeded, "too late")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	client := b.db.Client(t, option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(late)))
	store, err := idempotency.New(client, b.table, idempotency.Config{})
	require.NoError(t, err)
	again := b.count(t, fault.Rule{Method: "StreamingRead", Tag: "spanqueue-do", Nth: 2})
	done := make(chan error, 1)
	go func() {
		_, err := store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
		done <- err
	}()
	require.NoError(t, again.Wait(t.Context()))
	close(land)
	require.NoError(t, <-done)
	require.NoError(t, <-landed)
	require.EqualValues(t, 1, b.points(t))
	require.EqualValues(t, 1, b.records(t))
}

// The caller goes away between a commit whose answer was lost and the run that
// the client makes of it: that run learns nothing, and its error is not the
// commit's.
func TestLostAnswerAndTheCallerGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	ctx, hangUp := context.WithCancel(t.Context())
	b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: fault.After(codes.Internal, "stream terminated by RST_STREAM"),
		Match: func(fault.Call) bool { hangUp(); return true }})
	runs := 0
	receipt, err := b.store.Do(ctx, op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		runs++
		return idempotency.Result{Code: 1}, addPoint(ctx, tx)
	})
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.EqualValues(t, 1, receipt.Code)
	require.Equal(t, 1, runs)
}

// After an unknown commit, the record that is found may be another request's.
func TestMismatchAfterAnUnknownCommit(t *testing.T) {
	t.Parallel()
	for tag, run := range map[string]func(*bench) error{
		"spanqueue-do": func(b *bench) error {
			_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
			return err
		},
		"spanqueue-claim": func(b *bench) error {
			_, err := b.store.Steps(t.Context(), op, payload("p"), func(context.Context, *idempotency.Run) error {
				t.Error("ran under another request's claim")
				return errCrash
			})
			return err
		},
	} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			b.fault(t, fault.Rule{Method: "Commit", Tag: tag, Nth: 1, Do: fault.Before(codes.Unknown, "unknown")})
			look := b.fault(t, fault.Rule{Method: "StreamingRead", Match: looksAtARecord, Nth: 1, Do: fault.Hold()})
			done := make(chan error, 1)
			go func() { done <- run(b) }()
			require.NoError(t, look.Wait(t.Context()))
			_, err := b.store.Do(t.Context(), op, payload("other"), effect(idempotency.Result{}))
			require.NoError(t, err)
			reads := b.count(t, fault.Rule{Method: "StreamingRead", Tag: tag})
			look.Release()
			require.ErrorIs(t, <-done, idempotency.ErrMismatch)
			require.Zero(t, reads.Matched(), "what was found was not believed")
			require.EqualValues(t, 1, b.points(t))
		})
	}
}
