package front

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The administrative RPCs that the front must know of. The others pass through.
var (
	databaseAdminService = grpc.ServiceDesc{
		ServiceName: "google.spanner.admin.database.v1.DatabaseAdmin",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			unary("CreateDatabase", (*Server).createDatabase),
			unary("UpdateDatabaseDdl", (*Server).updateDatabaseDDL),
			unary("GetDatabaseDdl", (*Server).getDatabaseDDL),
			unary("DropDatabase", (*Server).dropDatabase),
			unary("ListDatabaseRoles", (*Server).listDatabaseRoles),
		},
	}
	instanceAdminService = grpc.ServiceDesc{
		ServiceName: "google.spanner.admin.instance.v1.InstanceAdmin",
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{unary("DeleteInstance", (*Server).deleteInstance)},
	}
	operationsService = grpc.ServiceDesc{
		ServiceName: "google.longrunning.Operations",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{
			unary("GetOperation", (*Server).getOperation),
			unary("ListOperations", (*Server).listOperations),
		},
	}
)

// dropDatabase waits for nobody: what is under way in the database is lost with it.
func (s *Server) dropDatabase(ctx context.Context, req *databasepb.DropDatabaseRequest) (*emptypb.Empty, error) {
	resp, err := s.databases.DropDatabase(ctx, req)
	if err == nil {
		s.forgetDatabase(context.WithoutCancel(ctx), req.GetDatabase())
	}
	return resp, err
}

func (s *Server) deleteInstance(ctx context.Context, req *instancepb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	resp, err := instancepb.NewInstanceAdminClient(s.conn).DeleteInstance(ctx, req)
	if err == nil {
		for _, d := range s.pool.Databases() {
			if strings.HasPrefix(d, req.GetName()+"/databases/") {
				s.forgetDatabase(context.WithoutCancel(ctx), d)
			}
		}
	}
	return resp, err
}

// forgetDatabase ends and forgets what the front has of a database that is gone.
func (s *Server) forgetDatabase(ctx context.Context, database string) {
	s.queues.Dropped(database)
	s.txns.DropDatabase(ctx, database)
	s.partitions.sweep(s.pool, database)
	s.known.forget(database)
	s.dialects.forget(database)
	s.expiry.Forget(database)
	s.pool.Drop(database)
}
