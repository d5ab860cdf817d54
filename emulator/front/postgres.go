package front

import (
	"context"
	"regexp"
	"strings"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// Databases of the PostgreSQL dialect pass through untouched. What is about queues there is the emulator's to answer; if
// it has none, the answer is made clear here.

// postgresDDL refuses queue statements.
func (s *Server) postgresDDL(ctx context.Context, statements []string) ([]string, error) {
	for _, sql := range statements {
		if !queues.IsQueueDDL(sql) && !postgresGrant.MatchString(sql) {
			continue
		}
		if knows, err := s.emulator.KnowsQueues(ctx); err != nil || knows {
			return statements, err
		}
		return nil, errPostgres("this statement: " + sql)
	}
	return statements, nil
}

var (
	// postgresGrant is a grant or revocation that is about queues, in that dialect.
	postgresGrant = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:grant|revoke)\b.*\bon\s+(?:queue\b|.*` + postgresName + `)`)
	// postgresCall is a call of a queue function in that dialect.
	postgresCall = regexp.MustCompile(`(?i)` + postgresName + `\s*\(`)
)

const postgresName = `\bspanner"?\s*\.\s*"?((?:receive|renewlease)_\w+)"?`

// explainSQL says why a statement failed that calls a queue function. It looks at nothing while statements succeed.
func (s *Server) explainSQL(ctx context.Context, sess ident.Session, sql string, err error) error {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.Unimplemented:
		call := postgresCall.FindStringSubmatch(sql)
		if call == nil || !s.isPostgres(ctx, sess.Database) {
			return err
		}
		// The statement may have failed for something else: the emulator names what it misses.
		if strings.Contains(strings.ToLower(status.Convert(err).Message()), strings.ToLower(call[1])) {
			return errPostgres("spanner." + call[1])
		}
	}
	return err
}

// explainMutations says why a commit was refused that sends or acknowledges.
func (s *Server) explainMutations(ctx context.Context, database string, ms []*spannerpb.Mutation, err error) error {
	if status.Code(err) != codes.NotFound {
		return err
	}
	for _, m := range ms {
		switch m.GetOperation().(type) {
		case *spannerpb.Mutation_Send_, *spannerpb.Mutation_Ack_:
			if s.isPostgres(ctx, database) {
				return errPostgres("Send and Ack")
			}
		}
	}
	return err
}

// isPostgres is false if it cannot be found out: it only chooses words.
func (s *Server) isPostgres(ctx context.Context, database string) bool {
	dialect, err := s.dialect(ctx, database)
	return err == nil && dialect == databasepb.DatabaseDialect_POSTGRESQL
}

func errPostgres(what string) error {
	return status.Errorf(codes.Unimplemented, "This front has no queues in databases of the PostgreSQL dialect, and so not %s", what)
}
