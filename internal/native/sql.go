package native

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
)

// statements are the texts that do not change from call to call.
type statements struct {
	queue      string // quoted
	name       string
	selectList string // key columns, Payload, DeliverTime, quoted
	keys       []string
	payload    string // the expression of the payload parameter
}

func newStatements(name string, keys []string, payload rowcodec.Payload) statements {
	s := statements{queue: quote(name), name: name, payload: payload.Parameter("payload")}
	for _, k := range keys {
		s.keys = append(s.keys, quote(k))
	}
	s.selectList = strings.Join(append(append([]string{}, s.keys...), quote(schema.PayloadColumn), quote(schema.DeliverTimeColumn)), ", ")
	return s
}

// where matches one delivery, with parameters whose names begin with prefix. A NULL key part has no parameter: = NULL
// matches nothing.
func (s statements) where(d backend.Delivery, prefix string, params map[string]any) string {
	var b strings.Builder
	for i, k := range s.keys {
		if rowcodec.IsNull(d.Key[i]) {
			fmt.Fprintf(&b, "%s IS NULL AND ", k)
			continue
		}
		fmt.Fprintf(&b, "%s = @%sk%d AND ", k, prefix, i)
		params[fmt.Sprintf("%sk%d", prefix, i)] = d.Key[i]
	}
	params[prefix+"seen"] = d.DeliverTime
	fmt.Fprintf(&b, "%s = @%sseen", quote(schema.DeliverTimeColumn), prefix)
	return b.String()
}

// insert sends one message by DML.
func (s statements) insert(key spanner.Key, withTime bool, params map[string]any) string {
	values := make([]string, 0, len(key)+2)
	for i := range key {
		name := fmt.Sprintf("k%d", i)
		params[name] = key[i]
		values = append(values, "@"+name)
	}
	values = append(values, s.payload)
	columns := append(append([]string{}, s.keys...), quote(schema.PayloadColumn))
	if withTime {
		columns = append(columns, quote(schema.DeliverTimeColumn))
		values = append(values, "@at")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", s.queue, strings.Join(columns, ", "), strings.Join(values, ", "))
}
