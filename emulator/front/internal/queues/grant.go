package queues

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/roles"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// role takes a statement about roles into the batch. Nothing of it is for the emulator but the book, once, in the end.
func (b *batch) role(s *tvf.RoleStatement) error {
	for i, object := range s.Objects {
		var err error
		if s.Objects[i], err = b.object(s, object); err != nil {
			return err
		}
	}
	after, err := b.roles.Apply(s)
	if err != nil {
		return err
	}
	b.roles, b.rolesChanged = after, true
	return nil
}

// object refuses names of queues and of their functions that are none, and returns the others as they were declared.
func (b *batch) object(s *tvf.RoleStatement, object string) (string, error) {
	switch s.Kind {
	case roles.OnQueue:
		queue := b.find(object)
		if queue == nil {
			return "", errNoQueue(object)
		}
		return queue.Name(), nil
	case roles.OnFunction:
		f, name := tvf.FunctionOf(object)
		if f == tvf.None {
			return object, nil // of something else, such as a change stream
		}
		queue := b.find(name)
		if queue == nil {
			return "", status.Errorf(codes.NotFound, "Table function not found: %s", object)
		}
		return f.String() + queue.Name(), nil
	case "TABLE":
		if b.find(object) != nil {
			return "", status.Errorf(codes.InvalidArgument, "%s ON TABLE %s: it is a queue; use ON QUEUE.", s.Verb, object)
		}
	}
	return object, nil
}

// checkGrants refuses to drop a queue while privileges on it are granted.
func (b *batch) checkGrants(queue *backing.Queue) error {
	granted := b.roles.GrantedOn(roles.OnQueue, queue.Name())
	for _, f := range functionsOf(queue) {
		granted = append(granted, b.roles.GrantedOn(roles.OnFunction, f)...)
	}
	if len(granted) == 0 {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "Cannot drop queue %s: revoke first the privileges on it and on its functions, granted to %s.", queue.Name(), strings.Join(granted, ", "))
}
