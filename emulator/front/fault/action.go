package fault

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Action is what a rule does to a call. The functions of this package make them; the zero value does nothing and is
// refused.
type Action struct {
	kind kind
	code codes.Code
	text string
	d    time.Duration
}

type kind int

const (
	none kind = iota
	abort
	before
	after
	delay
	delayReply
	hold
	holdReply
	late
	drop
	forget
	cut
	cutReply
	away
)

var kindNames = map[kind]string{
	none: "nothing", abort: "abort", before: "before", after: "after", delay: "delay", delayReply: "delay reply",
	hold: "hold", holdReply: "hold reply", late: "late", drop: "drop", forget: "forget", cut: "cut", cutReply: "cut reply", away: "away",
}

// Abort answers ABORTED with RetryInfo without forwarding; the transaction is rolled back inside.
func Abort() Action { return Action{kind: abort} }

// Before answers code and text without forwarding; the transaction is rolled back inside. OK is refused as a code.
func Before(code codes.Code, text string) Action {
	return failing(before, code, text)
}

// After forwards, and answers code and text in place of the answer. OK is refused as a code.
func After(code codes.Code, text string) Action {
	return failing(after, code, text)
}

// Delay waits for d and then forwards. It ends early when the client gives up.
func Delay(d time.Duration) Action { return Action{kind: delay, d: d} }

// DelayReply forwards at once, and lets the answer go after d.
func DelayReply(d time.Duration) Action { return Action{kind: delayReply, d: d} }

// Hold waits until the rule's handle is released or removed, then forwards.
func Hold() Action { return Action{kind: hold} }

// HoldReply forwards at once, and keeps the answer until the rule's handle is released or removed.
func HoldReply() Action { return Action{kind: holdReply} }

// Late waits as Hold does, but does not end when the client gives up: once released, the call is forwarded whether or
// not anybody still waits for its answer. So a request that got stuck on its way takes effect long after its client
// has taken it for lost.
func Late() Action { return Action{kind: late} }

// Drop forwards and then answers nothing until the client gives up.
func Drop() Action { return Action{kind: drop} }

// Forget commits, and then behaves as a server that was restarted: the answer is UNAVAILABLE, the next Commit of the
// transaction NOT_FOUND. Only for rules with Method "Commit".
func Forget() Action { return Action{kind: forget} }

// Cut closes the client's connection without forwarding. Everything else on that connection is cut off too. The
// transaction is not rolled back: its client has a moment to come back.
func Cut() Action { return Action{kind: cut} }

// CutReply forwards, and closes the client's connection in place of an answer.
func CutReply() Action { return Action{kind: cutReply} }

// Away makes the call's database unreachable for d, beginning with this call: whatever is under way there ends with
// UNAVAILABLE, whatever comes is answered so without being forwarded. Transactions live on.
func Away(d time.Duration) Action { return Action{kind: away, d: d} }

func failing(k kind, code codes.Code, text string) Action {
	if code == codes.OK {
		panic("fault: an action that fails needs a code other than OK")
	}
	return Action{kind: k, code: code, text: text}
}

// String names the action as the records show it.
func (a Action) String() string {
	switch a.kind {
	case before, after:
		return fmt.Sprintf("%s %v", kindNames[a.kind], a.code)
	case delay, delayReply, away:
		return fmt.Sprintf("%s %v", kindNames[a.kind], a.d)
	default:
		return kindNames[a.kind]
	}
}

// apply carries the action out on the n-th match; x is what stands behind it.
func (h *Handle) apply(ctx context.Context, n int, c Call, x Exchange) error {
	a := h.rule.Do
	// reply makes the action one on the answer: it is recorded when the answer is there.
	reply := func(then func() error) error {
		return x.Forward(ctx, func() error {
			h.record(c, n)
			return then()
		})
	}
	switch a.kind {
	case after:
		return reply(a.err)
	case delayReply:
		return reply(func() error { return sleep(ctx, a.d) })
	case holdReply:
		return reply(func() error { return h.held(ctx) })
	case drop:
		return reply(func() error {
			<-ctx.Done()
			return ended(ctx)
		})
	case forget:
		return reply(func() error {
			x.Forget()
			return status.Error(codes.Unavailable, "the server was restarted")
		})
	case cutReply:
		return reply(func() error { return cutOff(x) })
	}

	h.record(c, n)
	switch a.kind {
	case abort:
		x.Rollback(ctx)
		return aborted("Transaction was aborted.")
	case before:
		x.Rollback(ctx)
		return a.err()
	case cut:
		return cutOff(x)
	case away:
		return h.set.away.begin(c.Database, a.d)
	case delay:
		if err := sleep(ctx, a.d); err != nil {
			return err
		}
	case hold:
		if err := h.held(ctx); err != nil {
			return err
		}
	case late:
		ctx = context.WithoutCancel(ctx)
		if err := h.held(ctx); err != nil {
			return err
		}
	}
	return x.Forward(ctx, nil)
}

func cutOff(x Exchange) error {
	x.Cut()
	return status.Error(codes.Unavailable, "the connection was cut")
}

// err is the error of an action that fails.
func (a Action) err() error {
	if a.code == codes.Aborted {
		return aborted(a.text)
	}
	return status.Error(a.code, a.text)
}

// aborted is ABORTED as the service sends it, with the time after which to try again.
func aborted(text string) error {
	st, err := status.New(codes.Aborted, text).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	if err != nil {
		return status.Error(codes.Aborted, text)
	}
	return st.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func ended(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }
