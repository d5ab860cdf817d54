package front

import (
	"context"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
)

// listDatabaseRoles shows the roles that the front keeps. An emulator that knows queues, or a database of the PostgreSQL
// dialect, answers for itself.
func (s *Server) listDatabaseRoles(ctx context.Context, req *databasepb.ListDatabaseRolesRequest) (*databasepb.ListDatabaseRolesResponse, error) {
	dialect, err := s.dialect(ctx, req.GetParent())
	if err != nil {
		return nil, err
	}
	roles, err := s.queues.Roles(ctx, req.GetParent())
	if err != nil {
		return nil, err
	}
	if dialect == databasepb.DatabaseDialect_POSTGRESQL || len(roles) == 0 {
		return s.databases.ListDatabaseRoles(ctx, req)
	}
	resp := new(databasepb.ListDatabaseRolesResponse)
	for _, r := range roles { // there are too few for pages
		resp.DatabaseRoles = append(resp.DatabaseRoles, &databasepb.DatabaseRole{Name: req.GetParent() + "/databaseRoles/" + r})
	}
	return resp, nil
}
