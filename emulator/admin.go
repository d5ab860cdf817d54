package emulator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CreateInstance creates the instance name, "projects/P/instances/I", where I has 2 to 64 characters. An instance that
// is there already is left as it is.
func (e *Emulator) CreateInstance(ctx context.Context, name string) error {
	project, instance, ok := cutName(name, "/instances/")
	if !ok || !strings.HasPrefix(project, "projects/") || strings.Contains(instance, "/") {
		return fmt.Errorf("emulator: instance name %q is not projects/P/instances/I", name)
	}
	op, err := instancepb.NewInstanceAdminClient(e.conn).CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent:     project,
		InstanceId: instance,
		Instance: &instancepb.Instance{
			Config:      project + "/instanceConfigs/emulator-config",
			DisplayName: instance,
			NodeCount:   1,
		},
	})
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	if err := e.await(ctx, op, err); err != nil {
		return fmt.Errorf("emulator: create instance %s: %w", name, err)
	}
	return nil
}

// CreateDatabase creates the database name, "projects/P/instances/I/databases/D", with the statements ddl, and its
// instance when that is missing. A database that is there already is an error with code ALREADY_EXISTS.
func (e *Emulator) CreateDatabase(ctx context.Context, name string, ddl ...string) error {
	instance, database, ok := cutName(name, "/databases/")
	if !ok {
		return fmt.Errorf("emulator: database name %q is not projects/P/instances/I/databases/D", name)
	}
	if err := e.CreateInstance(ctx, instance); err != nil {
		return err
	}
	op, err := databasepb.NewDatabaseAdminClient(e.conn).CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent:          instance,
		CreateStatement: "CREATE DATABASE `" + database + "`",
		ExtraStatements: ddl,
	})
	if err := e.await(ctx, op, err); err != nil {
		return fmt.Errorf("emulator: create database %s: %w", name, err)
	}
	return nil
}

// UpdateDatabase runs further DDL statements on the database name, as one batch.
func (e *Emulator) UpdateDatabase(ctx context.Context, name string, ddl ...string) error {
	op, err := databasepb.NewDatabaseAdminClient(e.conn).UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{
		Database:   name,
		Statements: ddl,
	})
	if err := e.await(ctx, op, err); err != nil {
		return fmt.Errorf("emulator: update database %s: %w", name, err)
	}
	return nil
}

// DropDatabase drops the database name. One that is not there is no error.
func (e *Emulator) DropDatabase(ctx context.Context, name string) error {
	_, err := databasepb.NewDatabaseAdminClient(e.conn).DropDatabase(ctx, &databasepb.DropDatabaseRequest{Database: name})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("emulator: drop database %s: %w", name, err)
	}
	return nil
}

// DropInstance drops the instance name and all its databases. One that is not there is no error.
func (e *Emulator) DropInstance(ctx context.Context, name string) error {
	_, err := instancepb.NewInstanceAdminClient(e.conn).DeleteInstance(ctx, &instancepb.DeleteInstanceRequest{Name: name})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("emulator: drop instance %s: %w", name, err)
	}
	return nil
}

// await polls a long-running operation to its end. err is that of the call that started it.
func (e *Emulator) await(ctx context.Context, op *longrunningpb.Operation, err error) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if err != nil {
			return err
		}
		if op.GetDone() {
			return status.FromProto(op.GetError()).Err()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		op, err = longrunningpb.NewOperationsClient(e.conn).GetOperation(ctx, &longrunningpb.GetOperationRequest{Name: op.GetName()})
	}
}

// cutName cuts a resource name at the collection of its last part.
func cutName(name, collection string) (parent, id string, ok bool) {
	parent, id, ok = strings.Cut(name, collection)
	return parent, id, ok && parent != "" && id != ""
}
