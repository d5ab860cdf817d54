// Package fault makes the front misbehave on purpose, at a chosen place and in a chosen way, so that tests can show
// what a program does when its database aborts, falls silent or loses an answer.
//
// # Terms
//
// A [Rule] says which calls it is about and what is done to them. It is added to a [Set] (a front has one) and is then
// known by its [Handle]. A call is an RPC that a client sends, or, for a rule with Rows set, one row message of an
// open stream.
//
// A rule matches a call when everything it names agrees: method, database, a piece of the statement's text, the
// transaction tag and a predicate of one's own. Of the calls that match, Nth, Times and Probability choose those to
// which the [Action] is applied. Whatever is applied is recorded.
//
// # Order
//
// Rules are asked in the order in which they were added. Each one that applies wraps those after it: a [Delay] added
// before a [Before] waits and then fails; a rule behind one that does not forward is not asked at all and does not
// count the call.
//
// # What an action does to the transaction
//
// Not forwarded ([Abort], [Before]): the transaction that the request names is rolled back inside, as it would be on a
// server that died, and whatever is sent to it later is answered ABORTED. Forwarded ([After], [Drop], [HoldReply],
// [DelayReply], [CutReply]): it took effect, only the answer is lost or late; if that answer would have told the
// client the id of a transaction begun inline, nobody knows that id and the front rolls it back. [Forget] is a commit
// that took effect on a server that then forgot it. [Late] takes effect when it is released, whoever waits.
//
// # Rows
//
// To forward a row is to send it. So [Before] breaks the stream in its place, [After] right behind it, [Drop] falls
// silent behind it, [HoldReply] and [DelayReply] keep back what follows, [Delay] and [Hold] the row itself.
//
// # Chance
//
// With a Probability, decision n of (rule, method, tag) is a pure function of the rule's Seed and name: the same run
// meets the same decisions. Which transaction happens to be the n-th is up to the scheduler and is not promised.
package fault
