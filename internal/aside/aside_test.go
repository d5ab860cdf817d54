package aside

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInOrderAndAllBeforeClose(t *testing.T) {
	t.Parallel()
	r := New(100)
	var got []int
	for i := range 100 {
		r.Do(func() { got = append(got, i) })
	}
	require.True(t, r.Close(time.Minute))
	require.Len(t, got, 100)
	require.IsIncreasing(t, got)
	require.Zero(t, r.Dropped())
	r.Do(func() { t.Error("after Close") })
	require.Equal(t, int64(1), r.Dropped())
	require.True(t, r.Close(time.Minute), "again")
}

func TestBlockingDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(2)
		release := make(chan struct{})
		r.Do(func() { <-release })
		synctest.Wait()
		ran := 0
		for range 5 {
			r.Do(func() { ran++ })
		}
		require.Equal(t, int64(3), r.Dropped())
		begun := time.Now()
		require.False(t, r.Close(time.Second))
		require.Equal(t, time.Second, time.Since(begun))
		close(release)
		require.True(t, r.Close(time.Second))
		require.Equal(t, 2, ran)
	})
}

func TestPanicAndGoexitCostThatCallAlone(t *testing.T) {
	t.Parallel()
	r := New(10)
	ran := false
	r.Do(func() { panic("hook") })
	r.Do(runtime.Goexit)
	r.Do(func() { ran = true })
	require.True(t, r.Close(time.Minute))
	require.True(t, ran)
}
