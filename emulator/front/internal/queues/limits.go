package queues

import (
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// Limits of the service on receive queries that are open at once.
const (
	maxEqualReceivers   = 1000 // of one queue, with equal arguments
	maxProjectReceivers = 2000 // of one project (and region)
)

// limits counts the open receivers.
type limits struct {
	mu       sync.Mutex
	equal    map[receiverKind]int
	projects map[string]int
}

// receiverKind is what makes two receivers equal.
type receiverKind struct {
	database, queue string
	arguments       tvf.ReceiveArguments
}

// enter counts one more receiver, or refuses it. The refusal carries no RetryInfo: with it Google's Go client would try
// again for ever, unseen. leave must be called once if there is no error.
func (l *limits) enter(k receiverKind) (leave func(), err error) {
	project := projectOf(k.database)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.equal == nil {
		l.equal, l.projects = make(map[receiverKind]int), make(map[string]int)
	}
	switch {
	case l.equal[k] >= maxEqualReceivers:
		return nil, status.Errorf(codes.ResourceExhausted, "Queue %s has %d receive queries with these arguments; there can be no more.", k.queue, maxEqualReceivers)
	case l.projects[project] >= maxProjectReceivers:
		return nil, status.Errorf(codes.ResourceExhausted, "The project has %d receive queries; there can be no more.", maxProjectReceivers)
	}
	l.equal[k]++
	l.projects[project]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.equal[k]--; l.equal[k] == 0 {
			delete(l.equal, k)
		}
		if l.projects[project]--; l.projects[project] == 0 {
			delete(l.projects, project)
		}
	}, nil
}

// projectOf returns "projects/P" of a database's name.
func projectOf(database string) string {
	project, _, _ := strings.Cut(database, "/instances/")
	return project
}
