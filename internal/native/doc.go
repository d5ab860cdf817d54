// Package native is the seam's implementation for Spanner's own queues: RECEIVE_<Queue> and RENEWLEASE_<Queue>, the Send
// mutation, and the asserted, guarded DELETE.
//
// # How a message is taken out
//
// One message: DELETE ... WHERE key AND DeliverTime = @seen ASSERT_ROWS_MODIFIED 1. Never a plain DELETE (it succeeds on
// nothing), never as a last statement (writes of the handler follow), never the Ack mutation of a single key (it cannot
// compare DeliverTime).
//
// Several: a Read of the keys with an exclusive lock hint, the comparison here, then an Ack mutation, without
// ignore_not_found, for each that matched. The lock makes the comparison hold until the commit.
//
// Whenever an acknowledgement fails, an insert into a table that does not exist is buffered, so that no commit of the
// transaction can succeed, whatever its owner makes of the error.
package native
