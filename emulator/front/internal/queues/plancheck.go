package queues

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
)

// check evaluates both statements over no rows: it finds out the result's columns, or what is wrong.
func (p *plan) check(ctx context.Context) error {
	rs, err := p.query(ctx, p.selectList(), p.rows, nil)
	if err != nil {
		return p.explain(err, "the select list of "+p.function)
	}
	if len(rs.GetRows()) > 0 { // only an aggregate makes a row out of nothing
		return errAggregate
	}
	fields := rs.GetMetadata().GetRowType().GetFields()
	p.columns = &spannerpb.StructType{Fields: fields[:len(fields)-1]}
	if p.where == "" {
		return nil
	}
	_, err = p.query(ctx, p.condition(), p.tested, nil)
	return p.explain(err, fmt.Sprintf("the WHERE of %s, which sees %s", p.function, names(p.tested)))
}

var errAggregate = status.Error(codes.InvalidArgument, "aggregate functions cannot be used with a queue function: its rows are sent one by one")

// place is where the emulator saw an error, in a text that the user has not written.
var place = regexp.MustCompile(` \[at \d+:\d+\]$`)

// explain says where in the user's statement the emulator found something wrong.
func (p *plan) explain(err error, where string) error {
	if status.Code(err) != codes.InvalidArgument {
		return err
	}
	text, _, _ := strings.Cut(status.Convert(err).Message(), "\n")
	if strings.Contains(text, positionName) { // it is the one column that is not aggregated
		return errAggregate
	}
	return status.Errorf(codes.InvalidArgument, "%s, in %s", place.ReplaceAllString(text, ""), where)
}

func names(columns []backing.Column) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}
