package front

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxDeclared is how many schema changes are remembered at most.
const maxDeclared = 1000

// declared remembers which statements a client gave to a schema change whose operation shows others, and the
// operations of changes that left the emulator nothing to do. The zero value is ready.
type declared struct {
	mu    sync.Mutex
	made  int
	of    map[string]change
	order []string
}

type change struct {
	statements []string
	op         *longrunningpb.Operation // set when the emulator does not know it
}

func (d *declared) add(name string, c change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = make(map[string]change)
	}
	if _, known := d.of[name]; !known {
		d.order = append(d.order, name)
	}
	d.of[name] = c
	if len(d.order) > maxDeclared {
		delete(d.of, d.order[0])
		d.order = d.order[1:]
	}
}

func (d *declared) find(name string) (change, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.of[name]
	return c, ok
}

// remember notes the statements of an operation and shows them in it. An emulator that was started anew gives the names
// of operations once more, so an earlier note under that name is of the past.
func (d *declared) remember(op *longrunningpb.Operation, statements []string) *longrunningpb.Operation {
	var m databasepb.UpdateDatabaseDdlMetadata
	if _, noted := d.find(op.GetName()); !noted && op.GetMetadata().UnmarshalTo(&m) == nil && slices.Equal(m.GetStatements(), statements) {
		return op
	}
	d.add(op.GetName(), change{statements: statements})
	return d.restore(op)
}

// restore shows the statements that were declared in place of those that were executed. The commit timestamps are one
// a statement: the declared ones get the last.
func (d *declared) restore(op *longrunningpb.Operation) *longrunningpb.Operation {
	c, ok := d.find(op.GetName())
	if !ok {
		return op
	}
	var m databasepb.UpdateDatabaseDdlMetadata
	if op.GetMetadata().UnmarshalTo(&m) != nil {
		return op
	}
	if n := len(m.GetCommitTimestamps()); n > 0 && n == len(m.GetStatements()) {
		m.CommitTimestamps = slices.Repeat([]*timestamppb.Timestamp{m.GetCommitTimestamps()[n-1]}, len(c.statements))
	}
	m.Statements = c.statements
	if any, err := anypb.New(&m); err == nil {
		op.Metadata = any
	}
	return op
}

// nothingToDo is the operation of a change that is done already.
func (d *declared) nothingToDo(req *databasepb.UpdateDatabaseDdlRequest) (*longrunningpb.Operation, error) {
	now := timestamppb.Now()
	metadata, err := anypb.New(&databasepb.UpdateDatabaseDdlMetadata{
		Database:         req.GetDatabase(),
		Statements:       req.GetStatements(),
		CommitTimestamps: slices.Repeat([]*timestamppb.Timestamp{now}, len(req.GetStatements())),
	})
	if err != nil {
		return nil, err
	}
	response, err := anypb.New(new(emptypb.Empty))
	if err != nil {
		return nil, err
	}
	id := req.GetOperationId()
	if id == "" {
		d.mu.Lock()
		d.made++
		id = fmt.Sprintf("_front%d", d.made)
		d.mu.Unlock()
	}
	op := &longrunningpb.Operation{
		Name:     req.GetDatabase() + "/operations/" + id,
		Metadata: metadata,
		Done:     true,
		Result:   &longrunningpb.Operation_Response{Response: response},
	}
	d.add(op.Name, change{statements: req.GetStatements(), op: op})
	return op, nil
}

// wholeBelow are the operations that the emulator does not know and whose names begin with the prefix, the oldest first.
func (d *declared) wholeBelow(prefix string) (ops []*longrunningpb.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range d.order {
		if op := d.of[name].op; op != nil && strings.HasPrefix(name, prefix) {
			ops = append(ops, op)
		}
	}
	return ops
}

// whole is an operation that the emulator does not know, or nil.
func (d *declared) whole(name string) *longrunningpb.Operation {
	c, _ := d.find(name)
	return c.op
}
