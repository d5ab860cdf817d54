package front

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
)

// maxBatch is how many sessions the emulator makes at once, whatever it is asked for.
const maxBatch = 100

// session reads the name of a client's session.
func (s *Server) session(ctx context.Context, name string) (ident.Session, error) {
	sess, err := ident.ParseSession(name)
	switch {
	case errors.Is(err, ident.ErrMalformed):
		return sess, status.Errorf(codes.InvalidArgument, "Invalid session uri: %s", name)
	case err != nil || s.known.isDeleted(name):
		if err := s.alive(ctx, sess.Database); err != nil {
			return sess, err
		}
		return sess, errNoSession(name)
	}
	s.expiry.Notice(sess.Database)
	return sess, nil
}

// alive fails if the database does not exist.
func (s *Server) alive(ctx context.Context, database string) error {
	_, err := s.pool.Client().ListSessions(ctx, &spannerpb.ListSessionsRequest{Database: database, PageSize: 1})
	return err
}

// createSession makes no session of the emulator's but to have the request checked; that one goes to the pool.
func (s *Server) createSession(ctx context.Context, req *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	return s.newSession(ctx, req.GetDatabase(), req.GetSession())
}

func (s *Server) newSession(ctx context.Context, database string, want *spannerpb.Session) (*spannerpb.Session, error) {
	own, err := s.pool.Create(ctx, database, &spannerpb.Session{Labels: want.GetLabels()})
	if err != nil {
		return nil, err
	}
	s.pool.Give(own)
	if err := s.allowRole(ctx, database, want.GetCreatorRole()); err != nil {
		return nil, err
	}
	return s.nameSession(database, want)
}

// allowRole refuses roles that do not exist. Those of the PostgreSQL dialect are the emulator's.
func (s *Server) allowRole(ctx context.Context, database, role string) error {
	if role == "" {
		return nil
	}
	dialect, err := s.dialect(ctx, database)
	if err != nil || dialect == databasepb.DatabaseDialect_POSTGRESQL {
		return err
	}
	return s.queues.AllowRole(ctx, database, role)
}

// nameSession makes a session for clients. It exists in its name alone.
func (s *Server) nameSession(database string, want *spannerpb.Session) (*spannerpb.Session, error) {
	now := timestamppb.Now()
	made := &spannerpb.Session{
		Labels:                 want.GetLabels(),
		CreateTime:             now,
		ApproximateLastUseTime: now,
		CreatorRole:            want.GetCreatorRole(),
		Multiplexed:            want.GetMultiplexed(),
	}
	name, err := ident.NewSession(database, made)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	made.Name = name
	s.known.add(name, made.Multiplexed)
	return made, nil
}

func (s *Server) batchCreateSessions(ctx context.Context, req *spannerpb.BatchCreateSessionsRequest) (*spannerpb.BatchCreateSessionsResponse, error) {
	n := req.GetSessionCount()
	if n < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "Invalid number of sessions %d. Requested sessions should be greater than 0.", n)
	}
	resp := new(spannerpb.BatchCreateSessionsResponse)
	for i := range min(n, maxBatch) {
		name := s.nameSession
		if i == 0 {
			name = func(database string, want *spannerpb.Session) (*spannerpb.Session, error) {
				return s.newSession(ctx, database, want)
			}
		}
		made, err := name(req.GetDatabase(), req.GetSessionTemplate())
		if err != nil {
			return nil, err
		}
		resp.Session = append(resp.Session, made)
	}
	if n == 0 {
		return resp, s.alive(ctx, req.GetDatabase())
	}
	return resp, nil
}

func (s *Server) getSession(ctx context.Context, req *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
	sess, err := s.session(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.alive(ctx, sess.Database); err != nil {
		return nil, err
	}
	sess.Props.ApproximateLastUseTime = timestamppb.Now()
	return sess.Props, nil
}

// deleteSession is no error for a session that is gone already.
func (s *Server) deleteSession(ctx context.Context, req *spannerpb.DeleteSessionRequest) (*emptypb.Empty, error) {
	sess, err := ident.ParseSession(req.GetName())
	if errors.Is(err, ident.ErrMalformed) {
		return nil, status.Errorf(codes.InvalidArgument, "Invalid session uri: %s", req.GetName())
	}
	if err == nil {
		s.known.remove(req.GetName())
		s.txns.EndSession(context.WithoutCancel(ctx), req.GetName())
	}
	return new(emptypb.Empty), s.alive(ctx, sess.Database)
}

// errNoSession is what clients look for to make a new session.
func errNoSession(name string) error {
	st, err := status.New(codes.NotFound, "Session not found: "+name).WithDetails(&errdetails.ResourceInfo{
		ResourceType: "type.googleapis.com/google.spanner.v1.Session",
		ResourceName: name,
		Description:  "Session does not exist.",
	})
	if err != nil {
		return status.Error(codes.NotFound, "Session not found: "+name)
	}
	return st.Err()
}
