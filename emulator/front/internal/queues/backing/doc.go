// Package backing says how a queue is kept in an emulator that has no queues. It is pure: it turns definitions into
// DDL, requests and mutations, and rows back into messages, and talks to nobody.
//
// A queue Q is kept as three objects, created and dropped together in one batch of DDL:
//
//	Q                      the table: the declared columns, DeliverTime, and two hidden ones (below)
//	spanqueue_sent_Q       an index on the hidden send time
//	spanqueue_queue_Q      the declaration: an empty table with one column whose DEFAULT is the text of CREATE QUEUE;
//	                       ALTER QUEUE changes it, together with the table
//
// The hidden columns are
//
//	SpanqueueGeneration    drawn anew by every insert, so that a key that was deleted and inserted again is another
//	                       message
//	SpanqueueSentTime      when the insert ran, by the machine's clock
//
// Why an index on the send time and not on DeliverTime: the emulator's cost of reading a range of an index is that of
// all rows in the range, whatever the limit (28 ms for the first of 20,000 rows). A page of due rows would cost the
// whole backlog each time. Read by send time, the queue is a log whose end is cheap: an insert runs inside its
// transaction's turn, so that nothing committed later carries a time before the end of the last turn that read the
// log. A send by mutation is not stamped inside the turn; its key is known, and the row is read by key.
//
// Defaults exist for INSERT statements, which name the user's columns only. A send by mutation writes every column:
// in the emulator, inserts that use defaults are quadratic in the size of the commit.
package backing
