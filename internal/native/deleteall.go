package native

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// deleteStatement deletes several deliveries, each by its own key and DeliverTime, and returns their keys. It is one
// condition a delivery rather than a join with an array of structs, so that each is found by its key.
func (q *Queue) deleteStatement(deliveries []backend.Delivery) spanner.Statement {
	params := make(map[string]any)
	conditions := make([]string, len(deliveries))
	for i, d := range deliveries {
		var parts []string
		for j, k := range q.sql.keys {
			if rowcodec.IsNull(d.Key[j]) {
				parts = append(parts, k+" IS NULL")
				continue
			}
			name := fmt.Sprintf("k%d_%d", i, j)
			params[name] = d.Key[j]
			parts = append(parts, fmt.Sprintf("%s = @%s", k, name))
		}
		name := fmt.Sprintf("seen%d", i)
		params[name] = d.DeliverTime
		parts = append(parts, "`DeliverTime` = @"+name)
		conditions[i] = "(" + strings.Join(parts, " AND ") + ")"
	}
	return spanner.Statement{
		SQL: fmt.Sprintf("DELETE FROM %s WHERE %s THEN RETURN %s", q.sql.queue, strings.Join(conditions, " OR "),
			strings.Join(q.sql.keys, ", ")),
		Params: params,
	}
}
