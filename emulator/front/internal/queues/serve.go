package queues

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// ServeStream answers a statement of kind Receive or Renew that came through ExecuteStreamingSql. It returns when the
// stream has ended, with the status for the client. send may block; it is called from this goroutine only.
func (q *Queues) ServeStream(ctx context.Context, database string, req *spannerpb.ExecuteSqlRequest, send func(*spannerpb.PartialResultSet) error) error {
	c, err := q.newCall(ctx, database, req)
	if err != nil {
		return err
	}
	if c.statement.Function == tvf.Receive {
		return q.receive(ctx, c, send)
	}
	rs, err := q.renew(ctx, c)
	if err != nil {
		return err
	}
	part, size := &spannerpb.PartialResultSet{Metadata: rs.GetMetadata()}, 0
	for _, row := range rs.GetRows() {
		if size > pieceOfRow {
			if err := send(part); err != nil {
				return err
			}
			part, size = &spannerpb.PartialResultSet{}, 0
		}
		part.Values = append(part.Values, row.GetValues()...)
		size += proto.Size(row)
	}
	part.Last = true
	return send(part)
}

// ServeUnary answers a statement of kind Renew that came through ExecuteSql, and refuses one of kind Receive.
func (q *Queues) ServeUnary(ctx context.Context, database string, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	c, err := q.newCall(ctx, database, req)
	if err != nil {
		return nil, err
	}
	if c.statement.Function == tvf.Receive {
		return nil, status.Errorf(codes.InvalidArgument, "%s can be called only through ExecuteStreamingSql: its rows come while it runs.", c.name())
	}
	return q.renew(ctx, c)
}

// call is one statement that calls a queue's function.
type call struct {
	database  *database
	queue     *backing.Queue
	statement *tvf.Statement
	req       *spannerpb.ExecuteSqlRequest
	read      *spannerpb.TransactionOptions_ReadOnly // may be nil
}

// newCall reads the request and refuses what no such statement may be.
func (q *Queues) newCall(ctx context.Context, name string, req *spannerpb.ExecuteSqlRequest) (*call, error) {
	d, catalogue, err := q.catalogue(ctx, name)
	if err != nil {
		return nil, err
	}
	statement, err := tvf.Parse(q.RewriteClock(req.GetSql()))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	c := &call{database: d, statement: statement, req: req, queue: catalogue.find(statement.Queue)}
	if c.queue == nil {
		return nil, errNoQueue(statement.Queue)
	}
	c.read, err = checkRequest(req, c.name())
	return c, err
}

func (c *call) name() string { return c.statement.Function.String() + c.queue.Name() }

func (c *call) params() tvf.Params {
	return tvf.Params{Values: c.req.GetParams(), Types: c.req.GetParamTypes()}
}

// planOnly reports whether the client wants to know the result's columns and nothing else.
func (c *call) planOnly() bool { return c.req.GetQueryMode() == spannerpb.ExecuteSqlRequest_PLAN }
