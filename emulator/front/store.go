package front

import (
	"cmp"
	"context"
	"strings"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
	"github.com/spanqueue/spanqueue/emulator/front/internal/txn"
)

// store is the emulator as the queues see it. It implements queues.Store.
type store struct {
	txns      *txn.Manager
	pool      *backend.Pool
	native    *native
	instances instancepb.InstanceAdminClient
	databases databasepb.DatabaseAdminClient
}

// errRestarted ends what was under way while the emulator was started anew. The next try meets the new one.
var errRestarted = status.Error(codes.Aborted, "the emulator was started anew")

// InTurn implements queues.Store. The transaction is begun before the turn has come, which takes no lock.
func (s *store) InTurn(ctx context.Context, database string, f func(ctx context.Context, q queues.Querier) error) error {
	tx, err := s.pool.Begin(ctx, database, &spannerpb.TransactionOptions{
		Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)},
	})
	if err != nil {
		return err
	}
	ended := false
	end := func() {
		ended = true
		s.pool.Rollback(context.WithoutCancel(ctx), tx)
	}
	err = s.txns.InTurn(ctx, database, func(ctx context.Context) error {
		defer end() // before the next has its turn
		if holds, err := s.pool.Holds(ctx, tx); err != nil || !holds {
			return cmp.Or(err, errRestarted)
		}
		return f(ctx, &querier{client: s.pool.Client(), session: tx.Session.Name, sel: tx.Selector()})
	})
	if !ended {
		end()
	}
	return err
}

// Outside implements queues.Store.
func (s *store) Outside(ctx context.Context, database string, f func(ctx context.Context, q queues.Querier) error) error {
	return s.pool.With(ctx, database, func(session string) error {
		return f(ctx, &querier{client: s.pool.Client(), session: session})
	})
}

// querier makes reads in one transaction of the emulator, or single-use ones.
type querier struct {
	client  spannerpb.SpannerClient
	session string
	sel     *spannerpb.TransactionSelector
}

func (q *querier) Read(ctx context.Context, req *spannerpb.ReadRequest) (*spannerpb.ResultSet, error) {
	req.Session, req.Transaction = q.session, q.sel
	return q.client.Read(ctx, req)
}

func (q *querier) ExecuteSql(ctx context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	req.Session, req.Transaction = q.session, q.sel
	return q.client.ExecuteSql(ctx, req)
}

// Instance implements queues.Store.
func (s *store) Instance(ctx context.Context, database string) (queues.Instance, error) {
	name, _, _ := strings.Cut(database, "/databases/")
	instance, err := s.instances.GetInstance(ctx, &instancepb.GetInstanceRequest{Name: name})
	if err != nil {
		return queues.Instance{}, err
	}
	found := queues.Instance{ProcessingUnits: int64(instance.GetProcessingUnits())}
	if found.ProcessingUnits == 0 {
		found.ProcessingUnits = 1000 * int64(instance.GetNodeCount())
	}
	list := &databasepb.ListDatabasesRequest{Parent: name}
	for {
		page, err := s.databases.ListDatabases(ctx, list)
		if err != nil {
			return queues.Instance{}, err
		}
		for _, d := range page.GetDatabases() {
			found.Databases = append(found.Databases, d.GetName())
		}
		if page.GetNextPageToken() == "" {
			return found, nil
		}
		list.PageToken = page.GetNextPageToken()
	}
}
