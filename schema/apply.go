package schema

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrShape is what every *ShapeError is, for errors.Is.
var ErrShape = errors.New("schema: an object of another shape exists")

// ShapeError says that an object of a wanted name exists in the database but is
// not what the definition says. Nothing was changed. Either the definition is
// wrong, or the object has to be changed by hand, with whatever is in it.
type ShapeError struct {
	// Kind and Name are those of the wanted object.
	Kind, Name string
	// Want is the statement that would create it; Found is the statement in
	// the database's own DDL.
	Want, Found string
	// Differences has one line for each thing that is not as wanted.
	Differences []string
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s: %s %s: %s\nwanted:\n%s\nfound:\n%s", ErrShape, e.Kind, e.Name,
		strings.Join(e.Differences, "; "), e.Want, e.Found)
}

// Unwrap makes errors.Is(err, ErrShape) true.
func (e *ShapeError) Unwrap() error { return ErrShape }

// Result says what Apply did, by the names of objects.
type Result struct {
	// Created are the objects that this call created, in order.
	Created []string
	// Present are the objects that were there, made before or by another call
	// at the same time.
	Present []string
}

// Bounds of the wait for a database that refuses DDL for the moment: the
// emulator does beside an open write, and so may another Apply at work.
const (
	applyPatience   = 15 * time.Second
	applyFirstPause = 25 * time.Millisecond
	applyLastPause  = time.Second
)

var fullName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)

// Apply creates what is missing of the wanted elements in the database
// ("projects/P/instances/I/databases/D"), in one batch of DDL in the order of
// their dependencies. If nothing is missing it reads the database's DDL and
// sends nothing.
//
// Any number of processes may call it at once with the same elements: whoever
// comes second finds the objects there. It never alters or drops anything. An
// object that exists in another shape is a *ShapeError, one for each such
// object, joined; then nothing is created.
//
// It blocks until the database has made the change, which on the service takes
// seconds to minutes, or until ctx ends; a change that was sent may then still
// happen. A database that refuses DDL for the moment is asked again for up to
// 15 seconds. Errors of the database are wrapped, so status.Code and errors.As
// see through; the result then says what was present at the last look. On the
// service a batch that fails half way keeps its first half: call Apply again.
func Apply(ctx context.Context, admin *database.DatabaseAdminClient, databaseName string, want ...Element) (Result, error) {
	if admin == nil {
		return Result{}, errors.New("schema: Apply needs a client of the database admin API: the client is nil")
	}
	if !fullName.MatchString(databaseName) {
		return Result{}, fmt.Errorf("schema: the database's name is %q; it must be projects/P/instances/I/databases/D", databaseName)
	}
	plan, err := planFor(want)
	if err != nil {
		return Result{}, err
	}
	res, err := plan.apply(ctx, &adminDDL{admin: admin, database: databaseName})
	if err != nil {
		return res, fmt.Errorf("schema: apply to %s: %w", databaseName, err)
	}
	return res, nil
}

// ddlStore is the part of a database that Apply works on.
type ddlStore interface {
	// statements returns the DDL of everything in the database.
	statements(ctx context.Context) ([]string, error)
	// update runs the statements as one batch and waits for the outcome. After
	// an error any first part of them may have been kept.
	update(ctx context.Context, statements []string) error
}

// apply looks, creates what is missing, and after a refusal looks again:
// another process may have created it, or be about to.
func (p plan) apply(ctx context.Context, db ddlStore) (Result, error) {
	var (
		refused     error // of the last try
		giveUp      time.Time
		pause       = applyFirstPause
		lastMissing int
	)
	for {
		existing, err := db.statements(ctx)
		if err != nil {
			return Result{}, fmt.Errorf("read the DDL: %w", err)
		}
		missing, res, err := p.compare(existing)
		if err != nil {
			return Result{}, err
		}
		if len(missing) == 0 {
			return res, nil
		}
		if refused != nil {
			progress := len(missing) < lastMissing
			if !progress && (!mayPass(refused) || time.Now().After(giveUp)) {
				return res, refused
			}
		}
		lastMissing = len(missing)
		err = db.update(ctx, missing.sql())
		if err == nil {
			res.Created = missing.names()
			return res, nil
		}
		refused = fmt.Errorf("create %s: %w", strings.Join(missing.names(), ", "), err)
		if giveUp.IsZero() {
			giveUp = time.Now().Add(applyPatience)
		}
		if !mayPass(err) {
			continue // but look once more: it may be there
		}
		select {
		case <-ctx.Done():
			return res, fmt.Errorf("%w while waiting to try again: %w", context.Cause(ctx), refused)
		case <-time.After(pause):
		}
		pause = min(2*pause, applyLastPause)
	}
}

// mayPass reports whether the same DDL may be accepted a moment later: the
// database was busy with a write or another change, or the answer was lost.
func mayPass(err error) bool {
	switch status.Code(err) {
	case codes.FailedPrecondition, codes.Aborted, codes.AlreadyExists, codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	return false
}

// adminDDL is a ddlStore behind Google's admin client.
type adminDDL struct {
	admin    *database.DatabaseAdminClient
	database string
}

func (a *adminDDL) statements(ctx context.Context) ([]string, error) {
	resp, err := a.admin.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: a.database})
	if err != nil {
		return nil, err
	}
	return resp.GetStatements(), nil
}

func (a *adminDDL) update(ctx context.Context, statements []string) error {
	op, err := a.admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{
		Database: a.database, Statements: statements,
	})
	if err != nil {
		return err
	}
	return op.Wait(ctx)
}
