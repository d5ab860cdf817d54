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
	params[prefix+"seen"] = d.DeliverTime
	return fmt.Sprintf("%s AND %s = @%sseen", s.whereKey(d.Key, prefix, params), quote(schema.DeliverTimeColumn), prefix)
}

// whereKey matches the row of a key.
func (s statements) whereKey(key spanner.Key, prefix string, params map[string]any) string {
	conditions := make([]string, len(s.keys))
	for i, k := range s.keys {
		if rowcodec.IsNull(key[i]) {
			conditions[i] = k + " IS NULL"
			continue
		}
		name := fmt.Sprintf("%sk%d", prefix, i)
		conditions[i], params[name] = fmt.Sprintf("%s = @%s", k, name), key[i]
	}
	return strings.Join(conditions, " AND ")
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
