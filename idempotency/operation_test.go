package idempotency

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/schema"
)

func TestOperationIsRefusedByName(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("ä", n) }
	for _, c := range []struct {
		op   Operation
		want string // empty: valid
	}{
		{Operation{"s", "n", "k"}, ""},
		{Operation{long(128), long(128), long(255)}, ""},
		{Operation{"", "n", "k"}, "Scope is empty; it needs 1 to 128 characters"},
		{Operation{"s", "", "k"}, "Name is empty; it needs 1 to 128 characters"},
		{Operation{"s", "n", ""}, "Key is empty; it needs 1 to 255 characters"},
		{Operation{long(129), "n", "k"}, "Scope has 129 characters; it may have 1 to 128"},
		{Operation{"s", long(129), "k"}, "Name has 129 characters; it may have 1 to 128"},
		{Operation{"s", "n", long(256)}, "Key has 256 characters; it may have 1 to 255"},
		{Operation{"s", "n", "\xff"}, "Key is not valid UTF-8"},
	} {
		err := c.op.validate()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}

func TestOperationHidesScopeAndKey(t *testing.T) {
	t.Parallel()
	op := Operation{Scope: "secret-tenant", Name: "charge", Key: "secret-key"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "operation", op)
	for _, text := range []string{
		fmt.Sprint(op), fmt.Sprintf("%v %+v %#v %s %q", op, op, op, op, op), fmt.Sprintf("%v", []Operation{op}),
		fmt.Sprintf("%+v", Unfinished{Operation: op}), log.String(),
		(&inProgressError{op: op}).Error(), mismatched.refuse(&record{op: op}, time.Time{}).Error(),
	} {
		require.NotContains(t, text, "secret")
		require.Contains(t, text, "charge")
	}
	require.NotEqual(t, op.String(), Operation{Scope: op.Scope, Name: op.Name, Key: "other"}.String())
}

func TestStoredKeyKeepsPartsApart(t *testing.T) {
	t.Parallel()
	require.Equal(t, spanner.Key{"s", "n", "k"}, Operation{"s", "n", "k"}.storedKey())
}

func TestDerivedKeyIsHashedAndStable(t *testing.T) {
	t.Parallel()
	op := Operation{"tenant-1", "add point", "k1"}
	require.Equal(t, "55093ad7c0ef7f4f88aeb7afe4bda62c0ba7dde1f7bc1f9181390e5a8fccad86", op.derivedKey("charge"))
	seen := map[string]bool{}
	for _, o := range []Operation{op, {"tenant-2", "add point", "k1"}, {"tenant-1", "add", "point k1"}, {"tenant-1", "add point", "K1"}} {
		for _, step := range []string{"charge", "refund"} {
			require.False(t, seen[o.derivedKey(step)])
			seen[o.derivedKey(step)] = true
		}
	}
}

func TestShardsAreSpread(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 15, Operation{"tenant-1", "add point", "k1"}.shard())
	count := map[int64]int{}
	for i := range 1600 {
		s := Operation{"tenant-1", "add point", fmt.Sprint(i)}.shard()
		require.True(t, s >= 0 && s < schema.OperationShards)
		count[s]++
	}
	require.Len(t, count, schema.OperationShards)
	for s, n := range count {
		require.Greater(t, n, 50, "shard %d", s)
	}
}
