package queues

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/roles"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
	"github.com/spanqueue/spanqueue/schema"
)

// RewriteDDL translates a batch of DDL: statements about queues become statements about their backing tables, in their
// place; all others stay as they are. The result may be empty, when nothing is left to do. For an emulator that knows
// queues all statements stay as they are.
func (q *Queues) RewriteDDL(ctx context.Context, database string, statements []string) ([]string, error) {
	return q.rewriteDDL(ctx, database, statements, func() (*catalogue, error) {
		_, c, err := q.catalogue(ctx, database)
		return c, err
	})
}

// RewriteNewDDL is RewriteDDL for a database that is about to be created. What is known of one of that name is of the
// past.
func (q *Queues) RewriteNewDDL(ctx context.Context, database string, statements []string) ([]string, error) {
	return q.rewriteDDL(ctx, database, statements, func() (*catalogue, error) { return noQueues, nil })
}

func (q *Queues) rewriteDDL(ctx context.Context, database string, statements []string, catalogue func() (*catalogue, error)) ([]string, error) {
	if len(statements) == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(statements, concernsQueues) {
		if knows, err := q.store.KnowsQueues(ctx); err != nil || knows {
			return statements, err
		}
	}
	c, err := catalogue()
	if err != nil {
		return nil, err
	}
	b := batch{database: database, before: c, queues: q, changed: make(map[string]*backing.Queue), empty: make(map[string]bool), roles: c.roles}
	var out []string
	for _, sql := range statements {
		rewritten, err := b.rewrite(ctx, sql)
		if err != nil {
			return nil, err
		}
		out = append(out, rewritten...)
	}
	if b.rolesChanged {
		declare, err := b.roles.Declare(c.rolesKept)
		if err != nil {
			return nil, err
		}
		out = append(out, declare)
	}
	return out, nil
}

// concernsQueues reports whether a statement is one that the emulator need not know.
func concernsQueues(sql string) bool {
	_, role, _ := tvf.ParseRole(sql)
	return role || IsQueueDDL(sql)
}

// IsQueueDDL reports whether the text creates, alters or drops a queue, or tries to, in either dialect.
func IsQueueDDL(sql string) bool {
	statement, err := schema.ParseStatement(sql)
	_, other := statement.(*schema.Other)
	return err != nil || !other
}

// ExplainDDL replaces an error that the emulator gave for a batch, if the reason is a queue that it cannot keep: it
// answers INTERNAL for a type that it does not know.
func ExplainDDL(err error, statements []string) error {
	if status.Code(err) != codes.Internal {
		return err
	}
	for _, sql := range statements {
		statement, parseErr := schema.ParseStatement(sql)
		create, ok := statement.(*schema.CreateQueue)
		if parseErr != nil || !ok {
			continue
		}
		for _, c := range create.Queue.KeyColumns {
			if c.Type.Kind == schema.KindUUID {
				return status.Errorf(codes.Unimplemented, "CREATE QUEUE %s: the column %s is of type UUID, which the emulator behind this front does not have. Use STRING(36).", create.Queue.Name, c.Name)
			}
		}
	}
	return err
}

// RestoreDDL turns the emulator's own description of a database into that of what was declared: each queue's CREATE
// QUEUE stands where its backing table stood, and roles and grants stand behind everything.
func (q *Queues) RestoreDDL(ctx context.Context, database string, statements []string) ([]string, error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return nil, err
	}
	if len(c.queues) == 0 && !c.rolesKept {
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
	return append(out, c.roles.Statements()...), nil
}

// owns reports whether an object is part of how queues and roles are kept.
func (c *catalogue) owns(name string) bool {
	if strings.EqualFold(name, roles.Table) {
		return true
	}
	for _, queue := range c.queues {
		if queue.Owns(name) {
			return true
		}
	}
	return false
}
