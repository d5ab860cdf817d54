// Package idempotency lets one intended operation take effect once, however
// often it is asked for, and lets its result be had again.
//
// "I got no answer" is not "it was not done". Callers ask again, queues deliver
// again, commits lose their answers. What helps is not a key but the state
// machine around it: who may work on the operation, what has been done of it,
// and what its answer was, kept in the database that holds the effect.
//
// # The promise
//
// For one authenticated scope, operation name and key: at most one accepted
// operation within the retention, and one stable result. What is written
// through this package takes effect once. What is called outside the database
// is called at least once, under one key, or at most once; see Outside.
//
// # Terms
//
//   - An [Operation] is scope, name and key. It is what the caller means to
//     happen once.
//   - A [Fingerprint] is a hash of what was asked for. One key with two
//     fingerprints is the caller's mistake.
//   - A record is the row that remembers an operation.
//   - A [Claim] makes one call the operation's owner. The owner is a random
//     token drawn once a call; the generation counts owners.
//   - An [Effect] is the work in one transaction. A [Result] is what it
//     answers, a [Receipt] the result as it was stored.
//   - A step is a part of an operation that does not fit into one transaction:
//     [Local], in a transaction, or [Outside]. A recovery point is the last
//     step whose result is stored.
//   - To replay is to answer with the receipt and do nothing.
//
// # Who decides
//
// The database. Leases and expiry are commit timestamps plus a length, compared
// with the database's time; no client's clock is ever written or compared with
// them. A client's clock only makes it stop sooner: it trusts its lease from
// the time it sent the last renewal that succeeded.
//
// # States
//
//	               Do, Claim.Do: claim, effect, receipt in one commit
//	     ┌──────────────────────────────────────────────────────────────┐
//	     │                                                              ▼
//	 no record ── Steps ──► in progress ── Complete ──────────────► completed
//	   ▲ │  ▲                │  │ ▲ │                                   │
//	   │ │  └── release (1) ─┘  │ │ └───── Refuse ───────────────► failed
//	   │ │                  (2) │ │ (3)                           ▲ ▲   │
//	   │ │                      ▼ │                               │ │   │
//	   │ │                   uncertain ──── Refuse ───────────────┘ │   │
//	   │ │                                                          │   │
//	   │ └── Do, Claim.Refuse: a refusal, in a commit of its own ───┘   │
//	   │                                                                │
//	   └─────────── the retention is over, as judged on reading ────────┘
//
//	(1) the function of Steps returned an error before anything was done
//	(2) an outside call ended in Uncertain; with AtMostOnce: is about to be made
//	(3) the call's result has been stored, the call's own or Reconcile's
//
// In progress and uncertain have an owner, or none:
//
//	owned ── a step, a renewal ──────────────► owned, the lease begins anew
//	owned ── release after an error ─────────► free, with fingerprint and recovery point
//	owned ── the lease ends ─────────────────► as good as free
//	free  ── Steps of another call ──────────► owned, one generation on
//
// What a call finds, and what it does then:
//
//	no record, or an expired one        begins
//	another fingerprint                 ErrMismatch, in every state
//	completed, failed                   replays
//	in progress, owned by another       ErrInProgress, with RetryAfter
//	in progress, owned by this call     goes on: its own commit, whose answer was lost
//	in progress, free                   Steps takes over and goes on from the recovery point
//	uncertain, owned by another         ErrInProgress
//	uncertain, free                     Steps takes over and asks Reconcile; Do answers ErrUncertain
//
// A record that is not final never expires and is never deleted, not by policy
// nor by Reaper: what it may have done outside is not known.
//
// # One transaction
//
// [Store.Do] is the strongest form, and the one to prefer: claim, effect and
// receipt are one commit. The claim is a read of the record by its key with an
// exclusive lock; the receipt is written with the effect's own buffered writes.
// That is two requests for a new operation, and no statement that fails. Two
// claims at once cannot both commit: one waits, or is aborted, and looks again.
// Transactions are serializable with pessimistic locks, whatever the client's
// defaults are. A crash before the commit leaves nothing, after it everything.
//
// [Claim.Do] is the same inside a transaction of the caller's own.
//
// # Several steps
//
// [Store.Steps] commits the claim first and then a recovery point with each
// step. A step's transaction first reads the record with an exclusive lock and
// asserts owner and generation. If another call has taken over, the step's
// error is ErrNotOwner, its function is not run, and its transaction is made
// unable to commit, also if the error is passed over.
//
// The library repeats transactions and never an outside call. Who repeats the
// operation, a client or a queue, repeats the call, and only that one layer:
// retries on two layers multiply. Unique keys in the application's own tables
// stay worth having: they are the last guard, and hold when everything here is
// bypassed.
//
// Between steps nothing is done in the database and the lease is renewed, every
// third of it. A local step is not renewed while it runs, so it has what the
// lease has left, and a function as a whole has Config.HandlerTimeout, after
// which it is not renewed any more. A process that dies costs the others the
// rest of its lease; one that returns an error costs them nothing.
//
// # Commits of unknown outcome
//
// Any error but Aborted in place of Commit's answer means that the commit may
// have landed. The library then reads the record, on a context of its own: if
// the call's own token is in it, it has landed. If not, it may still be on its
// way, so the guarded transaction runs again: whichever lands first, the other
// finds it. That is bounded; what stays unknown is ErrUnresolved, and asking
// again with the same operation is safe. A NOT_FOUND is looked up too, since a
// server that has forgotten a transaction answers so. The end of a caller's
// context does not end a commit that is on its way.
//
// # What is kept
//
// Successes and final refusals: code, type, version, body and resource id. A
// refusal before execution leaves no record: return a plain error. A passing
// fault leaves none either in Do, and in Steps gives up the owner only. A body
// larger than Config.MaxBody is refused before the commit, or left out and
// marked. A receipt is what was answered, and stays so when the resource has
// changed or gone. Only a receipt without a body can be shown from the
// resource, by Config.Present, and says so.
//
// # Retention
//
// Records are kept for 48 hours after the operation ended, unless
// schema.Operations says otherwise: a night and a day longer than the retries
// of clients and the redelivery of queues usually last, and enough for a person
// to redrive by hand what failed on the day before. Longer costs room only;
// shorter than the longest way on which an operation can come back is a hole.
//
// Expiry is judged on reading, so that it does not depend on when a sweep came
// by. After it the operation counts as new, for any fingerprint. An effect whose
// own unique key then refuses should return ErrExpired, so that the caller can
// tell "done long ago" from a fault. [Store.Covers] says whether a redrive or a
// deferral would come back in time.
//
// # Secrets
//
// Scope and key may be secrets. They are stored as they are, and shown in no
// log, error or figure; an Operation prints hashes of them. Results are stored
// as they are too: keep no more in them than may be shown again to whoever owns
// the scope.
package idempotency
