package txn

import (
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The texts are the emulator's where it has one.
var (
	errUsed         = status.Error(codes.FailedPrecondition, "Cannot read or query using a transaction after it has been committed or rolledback.")
	errRolledBack   = status.Error(codes.FailedPrecondition, "Cannot commit a transaction after it has been rolled back.")
	errWasCommitted = status.Error(codes.FailedPrecondition, "Cannot rollback a transaction after it has been committed.")
	errSpent        = status.Error(codes.InvalidArgument, "PartitionedDml transaction may only be used to execute one statement")
	errLast         = status.Error(codes.FailedPrecondition, "The transaction has executed its last statement: it can only be committed, without mutations, or rolled back.")

	// ErrNotReadWrite answers Commit and Rollback of transactions that have neither.
	ErrNotReadWrite = status.Error(codes.FailedPrecondition, "Cannot commit or rollback a read-only or partitioned-dml transaction.")
)

// ErrAborted is ABORTED with RetryInfo, as the service sends it.
func ErrAborted(text string) error {
	st, err := status.New(codes.Aborted, text).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	if err != nil {
		return status.Error(codes.Aborted, text)
	}
	return st.Err()
}

// ErrNotFound answers for a transaction that this front, or a front at all, did not begin on the session named.
func ErrNotFound(id []byte) error {
	text := string(id)
	if q := strconv.Quote(text); q != `"`+text+`"` {
		text = q
	}
	return status.Error(codes.NotFound, "Transaction not found: "+text)
}

// statementAnswer is what a statement or read is told in a state that has ended. cause is why it failed or aborted.
func statementAnswer(s State, id []byte, cause error) error {
	switch s {
	case Failed, Aborted:
		return cause
	case Spent:
		return errSpent
	case Forgotten:
		return ErrNotFound(id)
	}
	return errUsed
}

// commitAnswer is what a Commit is told in a state that has ended, but for Committed.
func commitAnswer(s State, id []byte, cause error) error {
	switch s {
	case Failed, Aborted:
		return cause
	case Spent:
		return ErrNotReadWrite
	case Forgotten:
		return ErrNotFound(id)
	}
	return errRolledBack
}

// rollbackAnswer is what a Rollback is told in a state that has ended.
func rollbackAnswer(s State) error {
	switch s {
	case Committed:
		return errWasCommitted
	case Spent:
		return ErrNotReadWrite
	}
	return nil
}

// withRetryInfo adds RetryInfo to an ABORTED that has none.
func withRetryInfo(err error) error {
	st := status.Convert(err)
	for _, d := range st.Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			return err
		}
	}
	return ErrAborted(st.Message())
}

func fromContext(err error) error { return status.FromContextError(err).Err() }
