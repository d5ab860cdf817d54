package queues

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// planCache remembers the result columns of statements that the emulator has checked: receivers and renewals send the
// same few, and each check waits for the emulator's clock. A queue that is read from a changed schema is another key.
type planCache struct {
	mu      sync.Mutex
	columns map[planKey]*spannerpb.StructType
}

type planKey struct {
	queue *backing.Queue
	text  string
}

const maxPlans = 1000

func (c *planCache) get(k planKey) *spannerpb.StructType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.columns[k]
}

func (c *planCache) put(k planKey, columns *spannerpb.StructType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.columns) >= maxPlans || c.columns == nil {
		c.columns = make(map[planKey]*spannerpb.StructType)
	}
	c.columns[k] = columns
}

// text is all that the check depends on besides the queue: what is evaluated, and the types of the parameters.
func (p *plan) text(f tvf.Function) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\x00%s\x00%s", f, p.selectList(), p.condition())
	var names []string
	for name := range p.params.GetFields() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.types[name]) // never fails for a type
		fmt.Fprintf(&b, "\x00%s\x00%s", name, t)
	}
	return b.String()
}
