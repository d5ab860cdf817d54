package queues

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
	"github.com/spanqueue/spanqueue/schema"
)

// RewriteDDL translates a batch of DDL: statements about queues become statements about their backing tables, in their
// place; all others stay as they are. The result may be empty, when nothing is left to do. database need not exist yet.
func (q *Queues) RewriteDDL(ctx context.Context, database string, statements []string) ([]string, error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return nil, err
	}
	b := batch{before: c, queues: q, changed: make(map[string]*backing.Queue)}
	var out []string
	for _, sql := range statements {
		rewritten, err := b.rewrite(sql)
		if err != nil {
			return nil, err
		}
		out = append(out, rewritten...)
	}
	return out, nil
}

// batch follows the queues through a batch of statements.
type batch struct {
	before  *catalogue
	queues  *Queues
	changed map[string]*backing.Queue // by name in lower case; nil: dropped
}

func (b *batch) find(name string) *backing.Queue {
	if queue, ok := b.changed[strings.ToLower(name)]; ok {
		return queue
	}
	return b.before.find(name)
}

func (b *batch) rewrite(sql string) ([]string, error) {
	statement, err := schema.ParseStatement(sql)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "Error parsing Spanner DDL statement: %s : %v", sql, err)
	}
	switch s := statement.(type) {
	case *schema.CreateQueue:
		return b.create(s, sql), nil
	case *schema.DropQueue:
		return b.drop(s)
	case *schema.AlterQueue:
		return nil, status.Errorf(codes.Unimplemented, "ALTER QUEUE %s: this front cannot alter a queue; drop and create it", s.Name)
	}
	return []string{sql}, b.checkOther(sql)
}

func (b *batch) create(s *schema.CreateQueue, sql string) []string {
	if s.IfNotExists && b.find(s.Queue.Name) != nil {
		return nil
	}
	queue := backing.New(s.Queue)
	b.changed[strings.ToLower(queue.Name())] = queue
	return queue.Create(strings.TrimSpace(sql), s.IfNotExists, b.queues.opts.ClockOffset)
}

func (b *batch) drop(s *schema.DropQueue) ([]string, error) {
	queue := b.find(s.Name)
	if queue == nil {
		if s.IfExists {
			return nil, nil
		}
		return nil, errNoQueue(s.Name)
	}
	b.changed[strings.ToLower(s.Name)] = nil
	return queue.Drop(), nil
}

// checkOther refuses to alter or drop a queue's table behind its back.
func (b *batch) checkOther(sql string) error {
	d, ok := tvf.ScanDDL(sql)
	if !ok || d.Verb == "CREATE" || d.Kind != "TABLE" {
		return nil
	}
	if queue := b.find(d.Name); queue != nil {
		return status.Errorf(codes.InvalidArgument, "%s TABLE %s: it is a queue; use %s QUEUE.", d.Verb, d.Name, d.Verb)
	}
	return nil
}

// RestoreDDL turns the emulator's own description of a database into that of what was declared: each queue's CREATE
// QUEUE stands where its backing table stood.
func (q *Queues) RestoreDDL(ctx context.Context, database string, statements []string) ([]string, error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return nil, err
	}
	if len(c.queues) == 0 {
		return statements, nil
	}
	out := make([]string, 0, len(statements))
	for _, sql := range statements {
		d, ok := tvf.ScanDDL(sql)
		switch {
		case !ok || d.Verb != "CREATE":
			out = append(out, sql)
		case d.Kind == "TABLE" && c.find(d.Name) != nil:
			out = append(out, c.find(d.Name).Definition.DDL())
		case !c.owns(d.Name):
			out = append(out, sql)
		}
	}
	return out, nil
}

// owns reports whether an object is part of how a queue is kept.
func (c *catalogue) owns(name string) bool {
	for _, queue := range c.queues {
		if queue.Owns(name) {
			return true
		}
	}
	return false
}
