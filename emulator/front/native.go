package front

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	probeTimeout = 10 * time.Second
	probeProject = "projects/spanqueue-probe"
	probeQueue   = "CREATE QUEUE Probe (Id INT64 NOT NULL, Payload JSON NOT NULL) PRIMARY KEY (Id)"
)

// native remembers whether the emulator knows queues itself. Make it with newNative.
type native struct {
	asking chan struct{} // held by whoever finds out; a channel, so that waiting for it obeys a context
	known  bool          // it was found out; guarded by asking
	knows  bool
}

func newNative() *native { return &native{asking: make(chan struct{}, 1)} }

// KnowsQueues implements queues.Store: it finds out, the first time that somebody wants to know, by a database with a
// queue in an instance of its own, which is gone afterwards. A failure to find out is not remembered.
func (s *store) KnowsQueues(ctx context.Context) (bool, error) {
	n := s.native
	select {
	case n.asking <- struct{}{}:
	case <-ctx.Done():
		return false, status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-n.asking }()
	if n.known {
		return n.knows, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	knows, err := s.probe(ctx)
	if err != nil {
		return false, fmt.Errorf("front: find out whether the emulator knows queues: %w", err)
	}
	n.known, n.knows = true, knows
	return knows, nil
}

func (s *store) probe(ctx context.Context) (knows bool, err error) {
	instance := fmt.Sprintf("%s/instances/probe-%s", probeProject, strings.ToLower(rand.Text()[:10]))
	_, err = s.instances.CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent: probeProject, InstanceId: strings.TrimPrefix(instance, probeProject+"/instances/"),
		Instance: &instancepb.Instance{Config: probeProject + "/instanceConfigs/emulator-config", DisplayName: "probe", NodeCount: 1},
	})
	if err != nil {
		return false, err
	}
	database := instance + "/databases/probe"
	op, err := s.databases.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent: instance, CreateStatement: "CREATE DATABASE probe", ExtraStatements: []string{probeQueue},
	})
	if err == nil {
		err = status.FromProto(op.GetError()).Err()
	}
	// What cannot be dropped disturbs nobody: it is in a project of its own.
	_, _ = s.databases.DropDatabase(ctx, &databasepb.DropDatabaseRequest{Database: database})
	_, _ = s.instances.DeleteInstance(ctx, &instancepb.DeleteInstanceRequest{Name: instance})
	switch status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.InvalidArgument, codes.Unimplemented: // a syntax error
		return false, nil
	}
	return false, err
}
