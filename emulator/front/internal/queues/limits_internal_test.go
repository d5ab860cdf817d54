package queues

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// A project can have 2,000 receive queries, however they differ, and another project as many.
func TestReceiversOfAProjectAreLimited(t *testing.T) {
	t.Parallel()
	var l limits
	kind := func(project string, i int) receiverKind {
		return receiverKind{fmt.Sprintf("projects/%s/instances/i%d/databases/d", project, i%3), "q", tvf.ReceiveArguments{MaxBatchSize: int64(i)}}
	}
	var leave []func()
	for i := range maxProjectReceivers {
		l, err := l.enter(kind("p", i))
		require.NoError(t, err)
		leave = append(leave, l)
	}
	_, err := l.enter(kind("p", -1))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Empty(t, status.Convert(err).Details(), "with RetryInfo Google's client would try again for ever, unseen")
	other, err := l.enter(kind("other", 1))
	require.NoError(t, err)
	leave[7]()
	again, err := l.enter(kind("p", -1))
	require.NoError(t, err)
	leave[7] = again
	for _, l := range append(leave, other) {
		l()
	}
	require.Empty(t, l.equal)
	require.Empty(t, l.projects)
}
