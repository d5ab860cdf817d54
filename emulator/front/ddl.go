package front

import (
	"context"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// createDatabase needs no turn: nobody knows the database yet.
func (s *Server) createDatabase(ctx context.Context, req *databasepb.CreateDatabaseRequest) (*longrunningpb.Operation, error) {
	database := req.GetParent() + "/databases/" + createdID(req.GetCreateStatement())
	r := shallow(req)
	var err error
	if req.GetDatabaseDialect() == databasepb.DatabaseDialect_POSTGRESQL {
		r.ExtraStatements, err = s.postgresDDL(ctx, req.GetExtraStatements())
	} else {
		r.ExtraStatements, err = s.queues.RewriteNewDDL(ctx, database, req.GetExtraStatements())
	}
	if err != nil {
		return nil, err
	}
	op, err := s.databases.CreateDatabase(ctx, r)
	s.queues.DDLChanged(database)
	if err == nil {
		s.dialects.remember(database, req.GetDatabaseDialect())
	}
	return op, queues.ExplainDDL(err, req.GetExtraStatements())
}

// createdID is the name in CREATE DATABASE. What is none is the emulator's to refuse.
func createdID(statement string) string {
	words := strings.Fields(strings.TrimRight(strings.TrimSpace(statement), "; \t\n"))
	if len(words) == 0 {
		return ""
	}
	return strings.Trim(words[len(words)-1], "`\"")
}

// updateDatabaseDDL takes its turn: the emulator refuses schema changes beside an open read-write transaction. Once it
// has come, the change is not given up any more.
func (s *Server) updateDatabaseDDL(ctx context.Context, req *databasepb.UpdateDatabaseDdlRequest) (*longrunningpb.Operation, error) {
	dialect, err := s.dialect(ctx, req.GetDatabase())
	if err != nil {
		return nil, err
	}
	var op *longrunningpb.Operation
	err = s.txns.InTurn(ctx, req.GetDatabase(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		defer cancel()
		r := shallow(req)
		var err error
		if dialect == databasepb.DatabaseDialect_POSTGRESQL {
			r.Statements, err = s.postgresDDL(ctx, req.GetStatements())
		} else {
			r.Statements, err = s.queues.RewriteDDL(ctx, req.GetDatabase(), req.GetStatements())
		}
		if err != nil {
			return err
		}
		defer s.queues.DDLChanged(req.GetDatabase())
		if len(r.Statements) == 0 && len(req.GetStatements()) > 0 {
			op, err = s.declared.nothingToDo(req)
			return err
		}
		op, err = s.databases.UpdateDatabaseDdl(ctx, r)
		if err == nil {
			op = s.declared.remember(op, req.GetStatements())
		}
		return queues.ExplainDDL(err, req.GetStatements())
	})
	return op, err
}

func (s *Server) getDatabaseDDL(ctx context.Context, req *databasepb.GetDatabaseDdlRequest) (*databasepb.GetDatabaseDdlResponse, error) {
	resp, err := s.databases.GetDatabaseDdl(ctx, req)
	if err != nil {
		return nil, err
	}
	dialect, err := s.dialect(ctx, req.GetDatabase())
	if err != nil || dialect == databasepb.DatabaseDialect_POSTGRESQL {
		return resp, err
	}
	resp.Statements, err = s.queues.RestoreDDL(ctx, req.GetDatabase(), resp.GetStatements())
	return resp, err
}
