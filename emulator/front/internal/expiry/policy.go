package expiry

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/protobuf/types/known/structpb"
)

// policy is the row deletion policy of one table.
type policy struct {
	table  string   // as mutations name it; with its schema and a dot, if it has one
	key    []string // the columns of the primary key, in its order
	column string   // the time that a row's age is counted from
	days   int
}

const (
	policiesQuery = `SELECT table_schema, table_name, row_deletion_policy_expression FROM information_schema.tables WHERE row_deletion_policy_expression IS NOT NULL ORDER BY 1, 2`
	keysQuery     = `SELECT table_schema, table_name, column_name FROM information_schema.index_columns WHERE index_type = 'PRIMARY_KEY' ORDER BY ordinal_position`
)

// readPolicies reads the answers to the two queries.
func readPolicies(policies, keys *spannerpb.ResultSet) ([]policy, error) {
	key := make(map[string][]string)
	for _, row := range keys.GetRows() {
		v := row.GetValues()
		table := tableName(v[0], v[1])
		key[table] = append(key[table], v[2].GetStringValue())
	}
	var all []policy
	for _, row := range policies.GetRows() {
		v := row.GetValues()
		p := policy{table: tableName(v[0], v[1])}
		p.key = key[p.table]
		var err error
		if p.column, p.days, err = parseExpression(v[2].GetStringValue()); err != nil {
			return nil, fmt.Errorf("row deletion policy of table %s: %w", p.table, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func tableName(schema, table *structpb.Value) string {
	if s := schema.GetStringValue(); s != "" {
		return s + "." + table.GetStringValue()
	}
	return table.GetStringValue()
}

var expression = regexp.MustCompile("(?i)^\\s*OLDER_THAN\\s*\\(\\s*(`[^`]+`|[^`,\\s]+)\\s*,\\s*INTERVAL\\s+(\\d+)\\s+DAY\\s*\\)\\s*$")

func parseExpression(text string) (column string, days int, err error) {
	m := expression.FindStringSubmatch(text)
	if m == nil {
		return "", 0, fmt.Errorf("%q is not OLDER_THAN(column, INTERVAL n DAY)", text)
	}
	days, err = strconv.Atoi(m[2])
	return strings.Trim(m[1], "`"), days, err
}

// cutoff is the latest time that has expired. False: none can have, because the policy is longer than time.
func (p policy) cutoff(now time.Time) (time.Time, bool) {
	at := now.UTC().AddDate(0, 0, -p.days)
	return at, at.Year() >= 1
}

// expired is the query for the keys of at most limit expired rows, behind the first skipped ones.
func (p policy) expired(cutoff time.Time, limit, skipped int) *spannerpb.ExecuteSqlRequest {
	key := make([]string, len(p.key))
	for i, c := range p.key {
		key[i] = token.QuoteSQLIdent(c)
	}
	list := strings.Join(key, ", ")
	table := strings.Split(p.table, ".")
	for i, part := range table {
		table[i] = token.QuoteSQLIdent(part)
	}
	return &spannerpb.ExecuteSqlRequest{
		Sql: fmt.Sprintf("SELECT %s FROM %s WHERE %s <= @spanqueue_cutoff ORDER BY %s LIMIT %d OFFSET %d",
			list, strings.Join(table, "."), token.QuoteSQLIdent(p.column), list, limit, skipped),
		Params: &structpb.Struct{Fields: map[string]*structpb.Value{
			"spanqueue_cutoff": structpb.NewStringValue(cutoff.Format(time.RFC3339Nano)),
		}},
		ParamTypes: map[string]*spannerpb.Type{"spanqueue_cutoff": {Code: spannerpb.TypeCode_TIMESTAMP}},
	}
}

// deletion deletes rows by the keys that such a query has found.
func (p policy) deletion(keys []*structpb.ListValue) []*spannerpb.Mutation {
	if len(keys) == 0 {
		return nil
	}
	return []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{
		Table: p.table, KeySet: &spannerpb.KeySet{Keys: keys},
	}}}}
}
