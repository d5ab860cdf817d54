package schema

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// memoryDDL is a database's schema in memory. It answers each update by the
// next of refusals, and then as the emulator does: all or nothing, and not
// twice.
type memoryDDL struct {
	ddl      []string
	refuse   []refusal
	reads    int
	updates  [][]string
	updateAt []time.Time
}

// refusal is the answer to one update. before runs first, for what others do
// meanwhile; keep is how many of the statements are kept all the same.
type refusal struct {
	before func(db *memoryDDL)
	keep   int
	err    error
}

func (db *memoryDDL) statements(ctx context.Context) ([]string, error) {
	db.reads++
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return append([]string(nil), db.ddl...), nil
}

func (db *memoryDDL) update(_ context.Context, statements []string) error {
	db.updates = append(db.updates, statements)
	db.updateAt = append(db.updateAt, time.Now())
	if len(db.refuse) > 0 {
		next := db.refuse[0]
		db.refuse = db.refuse[1:]
		if next.before != nil {
			next.before(db)
		}
		if next.err != nil {
			db.ddl = append(db.ddl, statements[:next.keep]...)
			return next.err
		}
	}
	for _, sql := range statements {
		o, _ := createdObject(sql)
		for _, existing := range db.ddl {
			if e, ok := createdObject(existing); ok && e.key() == o.key() {
				return status.Errorf(codes.FailedPrecondition, "Duplicate name in schema: %s.", o.name)
			}
		}
	}
	db.ddl = append(db.ddl, statements...)
	return nil
}

func mustPlan(t *testing.T, elements ...Element) plan {
	t.Helper()
	p, err := planFor(elements)
	require.NoError(t, err)
	return p
}

func wholePlan(t *testing.T) plan {
	t.Helper()
	return mustPlan(t, Attempts{Queue: interleaved()}, interleaved(), DeadLetters{Queue: interleaved()}, usersTable)
}

func TestApplyCreatesAllInOneBatchAndThenNothing(t *testing.T) {
	t.Parallel()
	db := &memoryDDL{}
	p := wholePlan(t)
	res, err := p.apply(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, Result{Created: []string{"UserTasksAttempts", "Users", "UserTasks", "UserTasksDeadLetters"}}, res)
	require.Equal(t, [][]string{p.sql()}, db.updates)

	res, err = p.apply(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, Result{Present: p.names()}, res)
	require.Len(t, db.updates, 1, "nothing was missing, so nothing may be sent")
}

func TestApplyCreatesOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	db := &memoryDDL{ddl: []string{string(usersTable), interleaved().DDL()}}
	res, err := wholePlan(t).apply(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, Result{Created: []string{"UserTasksAttempts", "UserTasksDeadLetters"}, Present: []string{"Users", "UserTasks"}}, res)
	require.Len(t, db.updates, 1)
}

func TestApplyOfAnotherShapeCreatesNothing(t *testing.T) {
	t.Parallel()
	other := interleaved()
	other.Payload = JSON()
	db := &memoryDDL{ddl: []string{other.DDL(), "CREATE TABLE Users (UserId STRING(36)) PRIMARY KEY (UserId)"}}
	res, err := wholePlan(t).apply(t.Context(), db)
	require.ErrorIs(t, err, ErrShape)
	require.Empty(t, res)
	require.Empty(t, db.updates)
	require.ErrorContains(t, err, "QUEUE UserTasks")
	require.ErrorContains(t, err, "TABLE Users", "every object of another shape is named")
}

// Another process commits the same DDL between our look and our update.
func TestApplyThatComesSecondFindsAllPresent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := wholePlan(t)
		db := &memoryDDL{refuse: []refusal{{before: func(db *memoryDDL) { db.ddl = p.sql() }}}}
		res, err := p.apply(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, Result{Present: p.names()}, res)
		require.Len(t, db.updates, 1)
	})
}

// The other one wanted only a part, or something of another shape.
func TestApplyAfterARaceGoesOnFromWhatIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := wholePlan(t)
		db := &memoryDDL{refuse: []refusal{{before: func(db *memoryDDL) { db.ddl = []string{string(usersTable)} }}}}
		res, err := p.apply(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, []string{"Users"}, res.Present)
		require.Equal(t, []string{"UserTasksAttempts", "UserTasks", "UserTasksDeadLetters"}, res.Created)

		other := interleaved()
		other.Payload = JSON()
		db = &memoryDDL{refuse: []refusal{{before: func(db *memoryDDL) { db.ddl = []string{other.DDL()} }}}}
		_, err = p.apply(t.Context(), db)
		require.ErrorIs(t, err, ErrShape)
	})
}

func TestApplyWaitsForABusyDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := refusal{err: status.Error(codes.FailedPrecondition, "Schema change operation rejected because a read-write transaction is in progress.")}
		db := &memoryDDL{refuse: []refusal{busy, busy, busy, busy}}
		p := wholePlan(t)
		start := time.Now()
		res, err := p.apply(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, p.names(), res.Created)
		require.Len(t, db.updates, 5)
		require.Equal(t, (25+50+100+200)*time.Millisecond, time.Since(start))
	})
}

func TestApplyGivesUpOnADatabaseThatStaysBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &memoryDDL{}
		for range 1000 {
			db.refuse = append(db.refuse, refusal{err: status.Error(codes.FailedPrecondition, "busy")})
		}
		start := time.Now()
		_, err := wholePlan(t).apply(t.Context(), db)
		require.Equal(t, codes.FailedPrecondition, status.Code(err), err)
		require.ErrorContains(t, err, "create UserTasksAttempts, Users, UserTasks, UserTasksDeadLetters")
		require.Greater(t, time.Since(start), applyPatience)
		require.Less(t, time.Since(start), applyPatience+2*applyLastPause)
		require.Less(t, len(db.updates), 30)
	})
}

// An answer that was lost: the DDL landed, or it did not.
func TestApplySettlesALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := wholePlan(t)
		landed := &memoryDDL{refuse: []refusal{{keep: 4, err: status.Error(codes.Unavailable, "lost")}}}
		res, err := p.apply(t.Context(), landed)
		require.NoError(t, err)
		require.Equal(t, p.names(), res.Present)
		require.Len(t, landed.updates, 1)

		not := &memoryDDL{refuse: []refusal{{err: status.Error(codes.Unavailable, "lost")}}}
		res, err = p.apply(t.Context(), not)
		require.NoError(t, err)
		require.Equal(t, p.names(), res.Created)
		require.Len(t, not.updates, 2)
	})
}

// A refusal that will not pass is reported at once, unless the objects are
// there or the batch got further than the last.
func TestApplyDoesNotRepeatWhatCannotPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := status.Error(codes.InvalidArgument, "Table not found: Nobody")
		start := time.Now()
		db := &memoryDDL{refuse: []refusal{{err: bad}, {err: bad}, {err: bad}}}
		_, err := wholePlan(t).apply(t.Context(), db)
		require.ErrorIs(t, err, bad)
		require.Len(t, db.updates, 1)

		// The service keeps the statements before the one that fails.
		db = &memoryDDL{refuse: []refusal{{keep: 2, err: bad}, {keep: 0, err: bad}, {err: bad}}}
		res, err := wholePlan(t).apply(t.Context(), db)
		require.ErrorIs(t, err, bad)
		require.ErrorContains(t, err, "create UserTasks, UserTasksDeadLetters")
		require.Equal(t, []string{"UserTasksAttempts", "Users"}, res.Present)
		require.Len(t, db.updates, 2)
		require.Equal(t, start, time.Now(), "there was nothing to wait for")
	})
}

func TestApplyObeysItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the owner had enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		busy := status.Error(codes.FailedPrecondition, "busy")
		db := &memoryDDL{refuse: []refusal{{err: busy}, {err: busy}, {err: busy}}}
		timer := time.AfterFunc(60*time.Millisecond, func() { cancel(why) })
		defer timer.Stop()
		start := time.Now()
		_, err := wholePlan(t).apply(ctx, db)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, busy, "what it waited for is told too")
		require.Equal(t, 60*time.Millisecond, time.Since(start))
		require.Len(t, db.updates, 2)

		_, err = wholePlan(t).apply(ctx, &memoryDDL{})
		require.Equal(t, codes.Canceled, status.Code(err))
		require.True(t, strings.HasPrefix(err.Error(), "read the DDL: "), err)
	})
}
