package queues

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// Kind tells who serves a statement.
type Kind int

const (
	// Pass is a statement for the emulator.
	Pass Kind = iota
	// Receive is a query of RECEIVE_<Queue>, for ServeStream.
	Receive
	// Renew is a query of RENEWLEASE_<Queue>, for ServeStream or ServeUnary.
	Renew
)

// Statement looks at one statement. touched is for Committed, once the statement's transaction has committed. The error
// is a refusal. It is cheap for a database without queues, and for a text that was seen before.
func (q *Queues) Statement(ctx context.Context, database, sql string) (kind Kind, touched []string, err error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return Pass, nil, err
	}
	if len(c.queues) == 0 {
		return Pass, nil, nil
	}
	shape := q.scans.scan(sql)
	if kind, err := callOf(c, shape); kind != Pass || err != nil {
		return kind, nil, err
	}
	queue := c.find(shape.Table)
	if queue == nil {
		return Pass, nil, nil
	}
	switch shape.Verb {
	case tvf.Update:
		return Pass, nil, queue.RefuseWrite("UPDATE", "a message does not change; acknowledge it and send another one")
	case tvf.InsertOrUpdate:
		return Pass, nil, queue.RefuseWrite("INSERT OR UPDATE", "a message does not change; use INSERT")
	case tvf.Insert:
		if queue.Definition.Options.DisableSend {
			return Pass, nil, queue.SendDisabled()
		}
		return Pass, []string{strings.ToLower(queue.Name())}, nil
	}
	return Pass, nil, nil
}

// callOf finds the call of a function of a queue that exists. Other functions of such names are the emulator's to
// refuse.
func callOf(c *catalogue, shape tvf.Shape) (Kind, error) {
	for _, call := range shape.Calls {
		if c.find(call.Queue) == nil {
			continue
		}
		if shape.Verb != tvf.Query {
			return Pass, status.Errorf(codes.InvalidArgument, "%s%s can be called only by a query of its own", call.Function, call.Queue)
		}
		if call.Function == tvf.Receive {
			return Receive, nil
		}
		return Renew, nil
	}
	return Pass, nil
}

// scanCache remembers the shapes of texts: clients send few different ones, many times.
type scanCache struct {
	mu     sync.Mutex
	shapes map[string]tvf.Shape
}

const (
	maxShapes     = 1000
	maxShapeBytes = 16 << 10 // longer texts are likely built for one use
)

func (c *scanCache) scan(sql string) tvf.Shape {
	if len(sql) > maxShapeBytes {
		return tvf.Scan(sql)
	}
	c.mu.Lock()
	shape, ok := c.shapes[sql]
	c.mu.Unlock()
	if ok {
		return shape
	}
	shape = tvf.Scan(sql)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shapes) >= maxShapes || c.shapes == nil {
		c.shapes = make(map[string]tvf.Shape)
	}
	c.shapes[sql] = shape
	return shape
}
