package queues

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/roles"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
	"github.com/spanqueue/spanqueue/schema"
)

// batch follows the queues through a batch of statements.
type batch struct {
	database string
	before   *catalogue
	queues   *Queues
	changed  map[string]*backing.Queue // by name in lower case; nil: dropped
	empty    map[string]bool           // those created in the batch

	roles        roles.Book
	rolesChanged bool
	quota        *quota // nil: not asked for yet
}

func (b *batch) find(name string) *backing.Queue {
	if queue, ok := b.changed[strings.ToLower(name)]; ok {
		return queue
	}
	return b.before.find(name)
}

// all are the queues as they are after the statements so far.
func (b *batch) all() []*backing.Queue {
	var all []*backing.Queue
	for name, queue := range b.before.queues {
		if _, changed := b.changed[name]; !changed {
			all = append(all, queue)
		}
	}
	for _, queue := range b.changed {
		if queue != nil {
			all = append(all, queue)
		}
	}
	return all
}

func (b *batch) rewrite(ctx context.Context, sql string) ([]string, error) {
	statement, err := schema.ParseStatement(sql)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : %v", sql, err)
	}
	switch s := statement.(type) {
	case *schema.CreateQueue:
		return b.create(ctx, s, sql)
	case *schema.AlterQueue:
		return b.alter(ctx, s)
	case *schema.DropQueue:
		return b.drop(s)
	}
	if s, ok, err := tvf.ParseRole(sql); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : %v", sql, err)
	} else if ok {
		return nil, b.role(s)
	}
	return []string{sql}, b.checkOther(sql)
}

func (b *batch) create(ctx context.Context, s *schema.CreateQueue, sql string) ([]string, error) {
	switch exists := b.find(s.Queue.Name) != nil; {
	case exists && s.IfNotExists:
		return nil, nil
	case exists:
		return nil, status.Errorf(codes.FailedPrecondition, "Duplicate name in schema: %s.", s.Queue.Name)
	}
	queue := backing.New(s.Queue)
	if err := checkNames(queue); err != nil {
		return nil, err
	}
	if err := b.checkQuota(ctx, s.Queue.Name); err != nil {
		return nil, err
	}
	name := strings.ToLower(queue.Name())
	b.changed[name], b.empty[name] = queue, true
	return queue.Create(strings.TrimSpace(sql), b.queues.opts.ClockOffset), nil
}

// checkNames refuses the names that the front keeps its own things under.
func checkNames(queue *backing.Queue) error {
	if reserved(queue.Name()) {
		return errReserved("QUEUE", queue.Name())
	}
	for _, c := range queue.Definition.KeyColumns {
		if backing.ReservedColumn(c.Name) || strings.EqualFold(c.Name, positionName) || strings.EqualFold(c.Name, rowAlias) {
			return status.Errorf(codes.InvalidArgument, "CREATE QUEUE %s: the column name %s is reserved for what the front keeps of a message.", queue.Name(), c.Name)
		}
	}
	return nil
}

func reserved(name string) bool {
	return backing.Reserved(name) || strings.EqualFold(name, roles.Table)
}

func errReserved(kind, name string) error {
	return status.Errorf(codes.InvalidArgument, "CREATE %s %s: the name is reserved for what the front keeps of queues and roles.", kind, name)
}

func (b *batch) alter(ctx context.Context, s *schema.AlterQueue) ([]string, error) {
	queue := b.find(s.Name)
	if queue == nil {
		return nil, errNoQueue(s.Name)
	}
	definition, err := queue.Definition.Alter(s.Change)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	altered := backing.New(definition)
	if queue.Rebuilds(altered) {
		empty, err := b.isEmpty(ctx, queue)
		if err != nil {
			return nil, err
		}
		if !empty {
			return nil, status.Errorf(codes.Unimplemented, "ALTER QUEUE %s: between INTERLEAVE IN and INTERLEAVE IN PARENT this front can change a queue only while it has no messages, because the emulator cannot.", queue.Name())
		}
	}
	b.changed[strings.ToLower(queue.Name())] = altered
	return queue.Alter(altered, b.queues.opts.ClockOffset), nil
}

// isEmpty is a promise only while the batch has the database's turn.
func (b *batch) isEmpty(ctx context.Context, queue *backing.Queue) (empty bool, err error) {
	if b.empty[strings.ToLower(queue.Name())] {
		return true, nil
	}
	err = b.queues.store.Outside(ctx, b.database, func(ctx context.Context, q Querier) error {
		rs, err := q.Read(ctx, queue.ReadAny())
		empty = len(rs.GetRows()) == 0
		return err
	})
	return empty, err
}

func (b *batch) drop(s *schema.DropQueue) ([]string, error) {
	queue := b.find(s.Name)
	if queue == nil {
		if s.IfExists {
			return nil, nil
		}
		return nil, errNoQueue(s.Name)
	}
	if err := b.checkGrants(queue); err != nil {
		return nil, err
	}
	b.changed[strings.ToLower(s.Name)] = nil
	return queue.Drop(), nil
}

// checkOther refuses to create, alter or drop behind its back what belongs to a queue or its table, and to drop a table
// that a queue is interleaved in where the emulator does not know of it.
func (b *batch) checkOther(sql string) error {
	d, ok := tvf.ScanDDL(sql)
	if !ok {
		return nil
	}
	if d.Verb == "CREATE" {
		if reserved(d.Name) {
			return errReserved(d.Kind, d.Name)
		}
		return nil
	}
	if strings.EqualFold(d.Name, roles.Table) {
		return status.Errorf(codes.InvalidArgument, "%s %s %s: it keeps the roles of the database.", d.Verb, d.Kind, d.Name)
	}
	for _, queue := range b.all() {
		parent := queue.Definition.Interleave
		switch {
		case d.Kind == "TABLE" && strings.EqualFold(d.Name, queue.Name()):
			return status.Errorf(codes.InvalidArgument, "%s TABLE %s: it is a queue; use %s QUEUE.", d.Verb, d.Name, d.Verb)
		case queue.Owns(d.Name):
			return status.Errorf(codes.InvalidArgument, "%s %s %s: it belongs to the queue %s.", d.Verb, d.Kind, d.Name, queue.Name())
		case d.Kind == "TABLE" && d.Verb == "DROP" && !parent.InParent && strings.EqualFold(d.Name, parent.Table):
			return status.Errorf(codes.FailedPrecondition, "Cannot drop table %s with interleaved tables: %s.", d.Name, queue.Name())
		}
	}
	return nil
}
