package idempotency_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// The environment of a child process: what it works on. The test binary is its
// own child.
const (
	childAddr     = "IDEMPOTENCY_TEST_CHILD_ADDR"
	childDatabase = "IDEMPOTENCY_TEST_CHILD_DATABASE"
	childKey      = "IDEMPOTENCY_TEST_CHILD_KEY"
	childSteps    = "IDEMPOTENCY_TEST_CHILD_STEPS" // set: in steps
)

func TestMain(m *testing.M) {
	if os.Getenv(childAddr) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	emulatortest.Main(m)
}

// child does one operation, says so, and waits to be killed.
func child() error {
	ctx := context.Background()
	client, err := spanner.NewClientWithConfig(ctx, os.Getenv(childDatabase), spanner.ClientConfig{DisableNativeMetrics: true},
		emulator.ClientOptions(os.Getenv(childAddr))...)
	if err != nil {
		return err
	}
	key := os.Getenv(childKey)
	if os.Getenv(childSteps) != "" {
		return childInSteps(ctx, client, key)
	}
	store, err := idempotency.New(client, schema.Operations{}, idempotency.Config{})
	if err != nil {
		return err
	}
	if _, err := store.Do(ctx, crashOp(key), payload("p"), pointFor(key, nil)); err != nil {
		return err
	}
	fmt.Println("done")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func crashOp(key string) idempotency.Operation {
	return idempotency.Operation{Scope: "s", Name: "n", Key: key}
}

// pointFor adds a point to the key's own account, by reading and writing: a
// doubled effect would show. wrote, if not nil, is called after the write.
func pointFor(key string, wrote func()) idempotency.Effect {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		row, err := tx.ReadRow(ctx, "Accounts", spanner.Key{key}, []string{"Points"})
		if err != nil {
			return idempotency.Result{}, err
		}
		var n int64
		if err := row.Column(0, &n); err != nil {
			return idempotency.Result{}, err
		}
		err = tx.BufferWrite([]*spanner.Mutation{spanner.Update("Accounts", []string{"Id", "Points"}, []any{key, n + 1})})
		if wrote != nil {
			wrote()
		}
		return idempotency.Result{Code: 201}, err
	}
}

// effectAndReceipt reads both at one moment.
func (b *bench) effectAndReceipt(t *testing.T, key string) (got [2]int64) {
	t.Helper()
	stmt := spanner.Statement{
		SQL:    `SELECT (SELECT Points FROM Accounts WHERE Id = @key), (SELECT COUNT(*) FROM Operations WHERE OperationKey = @key AND State = 'completed')`,
		Params: map[string]any{"key": key},
	}
	err := b.client.Single().Query(t.Context(), stmt).Do(func(row *spanner.Row) error { return row.Columns(&got[0], &got[1]) })
	require.NoError(t, err)
	return got
}

// F27: effect and receipt are never apart, whatever ends whom and when, and both
// are there after the retry.
func TestCrashesNeverPartEffectAndReceipt(t *testing.T) {
	t.Parallel()
	const databases, kills, others = 10, 2, 18 // 20 kills and 180 cancels and lost answers
	// A caller who goes away while its first statement is on its way leaves a
	// transaction that it cannot name. Here the next one does not wait 10 s.
	e := emulatortest.New(t, emulator.Options{Front: front.Options{IdleBound: 500 * time.Millisecond, ClosedBound: 100 * time.Millisecond}})
	for n := range databases {
		t.Run(fmt.Sprint("database ", n), func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, e, schema.Operations{}, idempotency.Config{CommitTimeout: time.Second})
			random := rand.New(rand.NewPCG(uint64(n), 7))
			landed := map[bool]int{}
			one := func(key string, end func(key string)) {
				_, err := b.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Accounts", []string{"Id", "Points"}, []any{key, 0})})
				require.NoError(t, err)
				end(key)
				got := b.effectAndReceipt(t, key)
				require.Contains(t, [][2]int64{{0, 0}, {1, 1}}, got, "%s: (effect, receipt) after the crash", key)
				landed[got[0] == 1]++
				_, err = b.store.Do(t.Context(), crashOp(key), payload("p"), pointFor(key, nil))
				require.NoError(t, err)
				require.Equal(t, [2]int64{1, 1}, b.effectAndReceipt(t, key), "%s: (effect, receipt) after the retry", key)
			}
			for i := range kills {
				point := killPoints[(n*kills+i)%len(killPoints)]
				one(fmt.Sprintf("kill %d %s", i, point.name), func(key string) { b.kill(t, key, point.rule) })
			}
			for i := range others {
				how := interruptions[i%len(interruptions)]
				one(fmt.Sprintf("other %d %s", i, how.name), func(key string) { how.run(t, b, key, random) })
			}
			require.Positive(t, landed[true], "no crash came after its commit")
			require.Positive(t, landed[false], "no crash came before its commit")
		})
	}
}

// The proof can fail: with the receipt in a transaction of its own, after the
// effect's, as in many libraries, a crash between the two parts them.
func TestCrashesPartAReceiptThatIsWrittenLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	ctx, crash := context.WithCancel(t.Context())
	_, err := b.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := pointFor("a", nil)(ctx, tx)
		return err
	})
	require.NoError(t, err)
	crash()
	_, err = b.store.Do(ctx, crashOp("a"), payload("p"), func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, [2]int64{1, 0}, b.effectAndReceipt(t, "a"))
	_, err = b.store.Do(t.Context(), crashOp("a"), payload("p"), pointFor("a", nil))
	require.NoError(t, err)
	require.Equal(t, [2]int64{2, 1}, b.effectAndReceipt(t, "a"), "a doubled effect must be visible")
}

// killPoints are where the child is when it is killed. Without a rule it has
// said that it is done.
var killPoints = []struct {
	name string
	rule fault.Rule
}{
	{"at the claim", fault.Rule{Method: "StreamingRead", Nth: 1, Do: fault.Hold()}},
	{"in the effect", fault.Rule{Method: "StreamingRead", Nth: 2, Do: fault.HoldReply()}},
	{"before the commit", fault.Rule{Method: "Commit", Nth: 1, Do: fault.Hold()}},
	{"after the commit", fault.Rule{Method: "Commit", Nth: 1, Do: fault.HoldReply()}},
	{"after the answer", fault.Rule{}},
}

// kill runs the operation in a child process and kills that at the point of the
// rule, by its pid.
func (b *bench) kill(t *testing.T, key string, rule fault.Rule, env ...string) {
	t.Helper()
	var at *fault.Handle
	if rule.Method != "" {
		if rule.Tag == "" {
			rule.Tag = "spanqueue-do"
		}
		at = b.fault(t, rule)
		defer at.Remove()
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childAddr+"="+b.db.Endpoint(), childDatabase+"="+b.db.Name, childKey+"="+key)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	if at != nil {
		require.NoError(t, at.Wait(t.Context()))
	} else {
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "done\n", line)
	}
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
}

// interruptions are what else can come between an effect and its caller.
var interruptions = []struct {
	name string
	run  func(t *testing.T, b *bench, key string, random *rand.Rand)
}{
	{"cancelled after the last write", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, _ = b.store.Do(ctx, crashOp(key), payload("p"), pointFor(key, cancel))
	}},
	{"cancelled before the commit is forwarded", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		b.cancelAt(t, key, fault.Hold())
	}},
	{"cancelled before the commit is answered", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		b.cancelAt(t, key, fault.HoldReply())
	}},
	{"cancelled at a random time", func(t *testing.T, b *bench, key string, random *rand.Rand) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(6000))*time.Microsecond)
		defer cancel()
		_, _ = b.store.Do(ctx, crashOp(key), payload("p"), pointFor(key, nil))
	}},
	{"no answer to the commit", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		b.interrupt(t, key, fault.Drop())
	}},
	{"the answer lost, and the database out of reach", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		look := b.fault(t, fault.Rule{Method: "StreamingRead", Match: looksAtARecord, Nth: 1, Do: fault.Before(codes.PermissionDenied, "no reads here")})
		defer look.Remove()
		b.interrupt(t, key, fault.After(codes.Unknown, "lost"))
	}},
	{"the commit lost, and the database out of reach", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		look := b.fault(t, fault.Rule{Method: "StreamingRead", Match: looksAtARecord, Nth: 1, Do: fault.Before(codes.PermissionDenied, "no reads here")})
		defer look.Remove()
		b.interrupt(t, key, fault.Before(codes.Unknown, "lost"))
	}},
	{"the answer lost", func(t *testing.T, b *bench, key string, random *rand.Rand) {
		lost := []codes.Code{codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Canceled}
		b.interrupt(t, key, fault.After(lost[random.IntN(len(lost))], "lost"))
	}},
	{"the server restarted", func(t *testing.T, b *bench, key string, _ *rand.Rand) {
		b.interrupt(t, key, fault.Forget())
	}},
}

// interrupt does the operation with its commit treated so, once.
func (b *bench) interrupt(t *testing.T, key string, do fault.Action) {
	t.Helper()
	h := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: do})
	defer h.Remove()
	_, _ = b.store.Do(t.Context(), crashOp(key), payload("p"), pointFor(key, nil))
	require.Equal(t, 1, h.Applied(), "%s: the fault was not applied", key)
}

// cancelAt cancels the caller when its commit is held.
func (b *bench) cancelAt(t *testing.T, key string, hold fault.Action) {
	t.Helper()
	h := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: hold})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.store.Do(ctx, crashOp(key), payload("p"), pointFor(key, nil))
	}()
	require.NoError(t, h.Wait(t.Context()))
	cancel()
	h.Remove()
	<-done
}
