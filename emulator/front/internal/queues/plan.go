package queues

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// plan evaluates the select list and the condition of one statement over rows that the function returns. The emulator
// does the evaluating, with the rows as a query parameter; what is nothing but a column is copied here.
type plan struct {
	queues   *Queues
	database string
	function string // as users know it, for the words of errors
	params   *structpb.Struct
	types    map[string]*spannerpb.Type

	outputs []tvf.Output
	where   string
	alias   string
	rows    []backing.Column // of the function
	tested  []backing.Column // those that the condition sees, a prefix of rows

	columns *spannerpb.StructType // of the result
}

// Names within the statements that are made here. The position joins results to rows: an order is not promised.
const (
	rowsParam    = "spanqueue_rows"
	rowAlias     = "spanqueue_row"
	positionName = "spanqueue_position"
)

// newPlan prepares a statement and has the emulator check it, without any row. tested is how many of the columns the
// condition may use.
func (q *Queues) newPlan(ctx context.Context, database string, queue *backing.Queue, s *tvf.Statement, req *spannerpb.ExecuteSqlRequest, rows []backing.Column, tested int) (*plan, error) {
	columns := make([]tvf.Column, len(rows))
	for i, c := range rows {
		columns[i] = c.Column
	}
	outputs, err := s.Outputs(columns)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	p := &plan{
		queues: q, database: database, function: s.Function.String() + queue.Name(), params: req.GetParams(), types: req.GetParamTypes(),
		outputs: outputs, where: s.Where, alias: s.Alias, rows: rows, tested: rows[:tested],
	}
	if p.alias == "" {
		p.alias = rowAlias
	}
	key := planKey{queue: queue, text: p.text(s.Function)}
	if p.columns = q.plans.get(key); p.columns != nil {
		return p, nil
	}
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	q.plans.put(key, p.columns)
	return p, nil
}

func (p *plan) source() string {
	return fmt.Sprintf(" FROM UNNEST(@%s) AS %s", rowsParam, token.QuoteSQLIdent(p.alias))
}

func (p *plan) selectList() string {
	var list []string
	for _, o := range p.outputs {
		list = append(list, o.SQL)
	}
	// Line breaks end a comment that the user's text may end with.
	return "SELECT " + strings.Join(list, "\n,") + "\n," + positionName + p.source()
}

func (p *plan) condition() string {
	return "SELECT " + positionName + p.source() + " WHERE (" + p.where + "\n)"
}

// pass returns the positions of the rows for which the condition holds. values need only the tested columns.
func (p *plan) pass(ctx context.Context, rows [][]*structpb.Value) ([]int, error) {
	positions := make([]int, 0, len(rows))
	if p.where == "" {
		for i := range rows {
			positions = append(positions, i)
		}
		return positions, nil
	}
	passed := make([]bool, len(rows))
	err := p.inPieces(ctx, p.condition(), p.tested, rows, func(position int, _ []*structpb.Value) { passed[position] = true })
	if err != nil {
		return nil, err
	}
	for i, ok := range passed {
		if ok {
			positions = append(positions, i)
		}
	}
	return positions, nil
}

// project returns the rows as the select list wants them, in order.
func (p *plan) project(ctx context.Context, rows [][]*structpb.Value) ([][]*structpb.Value, error) {
	out := make([][]*structpb.Value, len(rows))
	if p.plain() {
		for i, row := range rows {
			for _, o := range p.outputs {
				out[i] = append(out[i], row[o.Column])
			}
		}
		return out, nil
	}
	err := p.inPieces(ctx, p.selectList(), p.rows, rows, func(position int, values []*structpb.Value) { out[position] = values })
	return out, err
}

// plain reports whether the select list has only columns.
func (p *plan) plain() bool {
	for _, o := range p.outputs {
		if o.Column < 0 {
			return false
		}
	}
	return true
}

// pieceBytes bounds the rows of one query, well below what a request may carry.
const pieceBytes = 16 << 20

func (p *plan) inPieces(ctx context.Context, sql string, columns []backing.Column, rows [][]*structpb.Value, result func(position int, values []*structpb.Value)) error {
	for first := 0; first < len(rows); {
		last, size := first, 0
		for ; last < len(rows) && (last == first || size < pieceBytes); last++ {
			for _, v := range rows[last][:len(columns)] {
				size += proto.Size(v)
			}
		}
		rs, err := p.query(ctx, sql, columns, rows[first:last])
		if err != nil {
			return err
		}
		for _, row := range rs.GetRows() {
			values := row.GetValues()
			position, err := positionOf(values[len(values)-1], last-first)
			if err != nil {
				return err
			}
			result(first+position, values[:len(values)-1])
		}
		first = last
	}
	return nil
}

// query runs a statement over the rows, given as an array of structs.
func (p *plan) query(ctx context.Context, sql string, columns []backing.Column, rows [][]*structpb.Value) (*spannerpb.ResultSet, error) {
	row := &spannerpb.StructType{}
	for _, c := range columns {
		row.Fields = append(row.Fields, &spannerpb.StructType_Field{Name: c.Name, Type: c.Type})
	}
	row.Fields = append(row.Fields, &spannerpb.StructType_Field{Name: positionName, Type: &spannerpb.Type{Code: spannerpb.TypeCode_INT64}})
	array := &structpb.ListValue{}
	for i, values := range rows {
		element := &structpb.ListValue{Values: append(values[:len(columns):len(columns)], structpb.NewStringValue(fmt.Sprint(i)))}
		array.Values = append(array.Values, structpb.NewListValue(element))
	}
	req := &spannerpb.ExecuteSqlRequest{
		Sql:        sql,
		Params:     &structpb.Struct{Fields: map[string]*structpb.Value{rowsParam: structpb.NewListValue(array)}},
		ParamTypes: map[string]*spannerpb.Type{rowsParam: {Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_STRUCT, StructType: row}}},
	}
	for name, v := range p.params.GetFields() {
		req.Params.Fields[name] = v
	}
	for name, t := range p.types {
		req.ParamTypes[name] = t
	}
	var rs *spannerpb.ResultSet
	err := p.queues.store.Outside(ctx, p.database, func(ctx context.Context, q Querier) error {
		var err error
		rs, err = q.ExecuteSql(ctx, req)
		return err
	})
	return rs, err
}

func positionOf(v *structpb.Value, n int) (int, error) {
	var position int
	if _, err := fmt.Sscan(v.GetStringValue(), &position); err != nil || position < 0 || position >= n {
		return 0, status.Errorf(codes.Internal, "the emulator answered row %q of %d", v.GetStringValue(), n)
	}
	return position, nil
}
