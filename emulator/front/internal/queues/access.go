package queues

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/roles"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// The methods in this file answer whether a session that named a role may do something, with PERMISSION_DENIED if not.
// A session that named none ("") may do everything. Tables are not asked about: their grants are not enforced.

// AllowRole is asked when a session is created: the role must exist.
func (q *Queues) AllowRole(ctx context.Context, database, role string) error {
	if role == "" {
		return nil
	}
	_, c, err := q.catalogue(ctx, database)
	if err != nil || c.roles.Exists(role) {
		return err
	}
	knows, err := q.store.KnowsQueues(ctx)
	if err == nil && !knows {
		err = status.Errorf(codes.PermissionDenied, "Role not found: %s.", role)
	}
	return err
}

// Roles are the names of all roles of the database, or none if it has none of its own.
func (q *Queues) Roles(ctx context.Context, database string) ([]string, error) {
	_, c, err := q.catalogue(ctx, database)
	if err != nil || !c.rolesKept {
		return nil, err
	}
	return c.roles.Names(), nil
}

// AllowStatement is asked before a statement is executed.
func (q *Queues) AllowStatement(ctx context.Context, database, role, sql string) error {
	if role == "" {
		return nil
	}
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return err
	}
	shape := q.scans.scan(sql)
	for _, call := range shape.Calls {
		if queue := c.find(call.Queue); queue != nil {
			if err := c.allow(role, "EXECUTE", roles.OnFunction, call.Function.String()+queue.Name()); err != nil {
				return err
			}
		}
	}
	for _, name := range shape.Reads {
		if err := c.allowOn(role, "SELECT", name); err != nil {
			return err
		}
	}
	switch shape.Verb {
	case tvf.Insert, tvf.InsertOrUpdate:
		return c.allowOn(role, "INSERT", shape.Table)
	case tvf.Delete:
		return c.allowOn(role, "DELETE", shape.Table)
	}
	return nil
}

// AllowRead is asked before the table is read by key.
func (q *Queues) AllowRead(ctx context.Context, database, role, table string) error {
	if role == "" {
		return nil
	}
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return err
	}
	return c.allowOn(role, "SELECT", table)
}

// AllowMutations is asked before a commit.
func (q *Queues) AllowMutations(ctx context.Context, database, role string, ms []*spannerpb.Mutation) error {
	if role == "" || len(ms) == 0 {
		return nil
	}
	_, c, err := q.catalogue(ctx, database)
	if err != nil {
		return err
	}
	for _, m := range ms {
		switch op := m.GetOperation().(type) {
		case *spannerpb.Mutation_Send_:
			err = c.allowOn(role, "INSERT", op.Send.GetQueue())
		case *spannerpb.Mutation_Ack_:
			err = c.allowOn(role, "DELETE", op.Ack.GetQueue())
		case *spannerpb.Mutation_Delete_:
			err = c.allowOn(role, "DELETE", op.Delete.GetTable())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allowOn asks for a privilege on a queue. Other names are nobody's business here.
func (c *catalogue) allowOn(role, privilege, name string) error {
	queue := c.find(name)
	if queue == nil {
		return nil
	}
	return c.allow(role, privilege, roles.OnQueue, queue.Name())
}

func (c *catalogue) allow(role, privilege, kind, object string) error {
	if c.roles.Allows(role, privilege, kind, object) {
		return nil
	}
	what := map[string]string{roles.OnQueue: "queue", roles.OnFunction: "table function"}[kind]
	return status.Errorf(codes.PermissionDenied, "Role %s does not have required privileges on %s %s: it needs %s.", role, what, object, privilege)
}

// functionsOf are the functions of a queue, as GRANT names them.
func functionsOf(queue *backing.Queue) []string {
	return []string{tvf.Receive.String() + queue.Name(), tvf.Renew.String() + queue.Name()}
}
