package ident

import (
	"crypto/rand"
	"errors"
	"regexp"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
)

// Session is what a session's name says.
type Session struct {
	Database string // "projects/P/instances/I/databases/D"
	// Props has what the client asked for, and when: labels, role, multiplexed, create time. Never nil.
	Props *spannerpb.Session
}

// Role is the database role that the session named, or "".
func (s Session) Role() string { return s.Props.GetCreatorRole() }

// NewSession names a new session of the database. Two calls with the same arguments name two sessions.
func NewSession(database string, props *spannerpb.Session) (string, error) {
	p := &spannerpb.Session{
		Name:        rand.Text()[:10], // no name yet: what makes this one unique
		Labels:      props.GetLabels(),
		CreateTime:  props.GetCreateTime(),
		CreatorRole: props.GetCreatorRole(),
		Multiplexed: props.GetMultiplexed(),
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return "", err
	}
	return database + "/sessions/" + seal(kindSession, body), nil
}

// Errors of ParseSession.
var (
	ErrMalformed = errors.New("ident: not the name of a session")
	ErrForeign   = errors.New("ident: the name of a session that no front made")
)

// ParseSession reads a session's name. Beside ErrForeign the session's Database is set.
func ParseSession(name string) (Session, error) {
	database, id, found := strings.Cut(name, "/sessions/")
	if !found || id == "" || !databaseName.MatchString(database) {
		return Session{}, ErrMalformed
	}
	foreign := Session{Database: database, Props: new(spannerpb.Session)}
	k, body, ok := open(id)
	if !ok || k != kindSession {
		return foreign, ErrForeign
	}
	p := new(spannerpb.Session)
	if err := proto.Unmarshal(body, p); err != nil {
		return foreign, ErrForeign
	}
	p.Name = name
	return Session{Database: database, Props: p}, nil
}

// DatabaseOf is the database in a session's name, or "".
func DatabaseOf(session string) string {
	if database, _, found := strings.Cut(session, "/sessions/"); found {
		return database
	}
	return ""
}

var databaseName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)
