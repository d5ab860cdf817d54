// Package tvf reads the SQL statements that concern queues: which kind of statement a text is, and the calls of
// RECEIVE_<Queue> and RENEWLEASE_<Queue> in full. It is pure: it knows no database and evaluates nothing.
//
// Scan looks at tokens only. It is for every statement that passes through the front, must be cheap, and never fails:
// what it cannot read is left to the emulator to refuse. Words in strings, comments and quoted names of other things
// change nothing.
//
// Parse reads a statement that calls one of the two functions. Such a statement is
//
//	SELECT <list> FROM RECEIVE_<Queue>(<named arguments>) [AS alias] [WHERE <condition>]
//
// and nothing more: no DISTINCT, ORDER BY, LIMIT, GROUP BY, joins, subqueries. The list and the condition are kept as
// text, for the emulator to evaluate; a list of plain columns is recognized, because it needs no evaluation.
package tvf
