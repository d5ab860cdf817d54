package roles

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// maxRoles is how many roles a database can have.
const maxRoles = 100

// ErrNotFound is the answer to a statement about a role that does not exist.
func ErrNotFound(role string) error { return status.Errorf(codes.NotFound, "Role not found: %s", role) }

// Apply returns the book after the statement. The error is the refusal. Whether the objects exist is the caller's to
// find out.
func (b Book) Apply(s *tvf.RoleStatement) (Book, error) {
	b.roles, b.grants = slices.Clone(b.roles), slices.Clone(b.grants)
	switch s.Verb {
	case "CREATE":
		return b.create(s)
	case "DROP":
		return b.drop(s)
	}
	if err := check(s); err != nil {
		return b, err
	}
	for _, role := range s.Roles {
		if !b.Exists(role) {
			return b, ErrNotFound(role)
		}
	}
	for _, g := range b.grantsOf(s) {
		i := slices.IndexFunc(b.grants, g.same)
		switch {
		case s.Verb == "REVOKE" && i >= 0:
			b.grants = slices.Delete(b.grants, i, i+1)
		case s.Verb == "GRANT" && i < 0:
			if err := b.checkRole(g); err != nil {
				return b, err
			}
			b.grants = append(b.grants, g)
		}
	}
	return b, nil
}

func (b Book) create(s *tvf.RoleStatement) (Book, error) {
	name := s.Roles[0]
	switch {
	case indexFold(systemRoles, name) >= 0 || strings.HasPrefix(strings.ToLower(name), "spanner_"):
		return b, status.Errorf(codes.InvalidArgument, "CREATE ROLE %s: the name is reserved.", name)
	case b.Exists(name) && s.If:
		return b, nil
	case b.Exists(name):
		return b, status.Errorf(codes.FailedPrecondition, "Duplicate name in schema: %s.", name)
	case len(b.roles) >= maxRoles:
		return b, status.Errorf(codes.FailedPrecondition, "CREATE ROLE %s: the database has %d roles; there can be no more.", name, maxRoles)
	}
	b.roles = append(b.roles, name)
	return b, nil
}

func (b Book) drop(s *tvf.RoleStatement) (Book, error) {
	name := s.Roles[0]
	i := indexFold(b.roles, name)
	switch {
	case i < 0 && s.If:
		return b, nil
	case i < 0:
		return b, ErrNotFound(name)
	}
	for _, g := range b.grants {
		if strings.EqualFold(g.role, name) || g.kind == onRole && strings.EqualFold(g.object, name) {
			return b, status.Errorf(codes.FailedPrecondition, "Cannot drop role %s: revoke first what is granted (%s).", name, g.ddl())
		}
	}
	b.roles = slices.Delete(b.roles, i, i+1)
	return b, nil
}

// check refuses privileges that the kind of object does not have.
func check(s *tvf.RoleStatement) error {
	var known []string
	switch s.Kind {
	case OnQueue:
		known = []string{"SELECT", "INSERT", "DELETE"}
	case OnFunction:
		known = []string{"EXECUTE"}
	default:
		return nil
	}
	for _, p := range s.Privileges {
		switch {
		case strings.Contains(p, "(") && s.Kind == OnQueue:
			return status.Errorf(codes.InvalidArgument, "%s %s ON QUEUE: privileges on columns are not supported on queues.", s.Verb, p)
		case !slices.Contains(known, p):
			return status.Errorf(codes.InvalidArgument, "%s %s ON %s: the privileges there are %s.", s.Verb, p, s.Kind, strings.Join(known, ", "))
		}
	}
	return nil
}

// checkRole refuses to grant a role that does not exist, or that has the one that it is granted to.
func (b Book) checkRole(g grant) error {
	switch {
	case g.kind != onRole:
		return nil
	case !b.Exists(g.object):
		return ErrNotFound(g.object)
	case indexFold(b.closure(g.object), g.role) >= 0:
		return status.Errorf(codes.InvalidArgument, "GRANT ROLE %s TO ROLE %s: a role cannot have itself.", g.object, g.role)
	}
	return nil
}

// grantsOf are the single grants of a statement, with the roles spelled as they were created.
func (b Book) grantsOf(s *tvf.RoleStatement) []grant {
	privileges := s.Privileges
	if s.Kind == onRole {
		privileges = []string{""}
	}
	var all []grant
	for _, role := range s.Roles {
		for _, object := range s.Objects {
			for _, p := range privileges {
				if s.Kind == onRole {
					object = b.spelling(object)
				}
				all = append(all, grant{p, s.Kind, object, b.spelling(role)})
			}
		}
	}
	return all
}

func (b Book) spelling(role string) string {
	for _, list := range [][]string{b.roles, systemRoles} {
		if i := indexFold(list, role); i >= 0 {
			return list[i]
		}
	}
	return role
}
