// Package idempotencyhttp makes net/http handlers idempotent by the
// Idempotency-Key header: a client that got no answer sends the same request
// again and gets the answer, without the work being done twice. It follows the
// IETF draft "The Idempotency-Key HTTP Header Field" (draft-ietf-httpapi-
// idempotency-key-header). The states are those of package idempotency.
//
// # Terms
//
//   - A request's operation is (scope, name, key): who asks, by Config.Scope;
//     what is done, by the name given to Tx or Steps; and the key.
//   - A duplicate is a request with the operation of an earlier one. Its
//     fingerprint must be the same.
//   - To replay is to send the first answer again: status, Content-Type,
//     Content-Encoding, the chosen headers and the body, and
//     "Idempotent-Replayed: true".
//
// # Two modes
//
// [Middleware.Tx] gives the handler the transaction in which the answer is
// kept: effect and answer are one commit. A duplicate waits for the first
// request and replays. [Middleware.Steps] is for work that does not fit into
// one transaction, such as a call of a payment provider. A duplicate is
// answered at once, with 409 or with 202 and an operation to poll.
//
// # Who decides
//
// The database, as in package idempotency. In mode Tx requests of one process
// besides wait for each other in memory, which decides nothing and only spares
// the database.
//
// # When bytes are sent
//
// No byte of an answer goes out before Commit has answered. When a commit's
// answer is lost, its outcome is found out first, so that the client gets the
// answer as if nothing had happened; when it cannot be found out, the answer is
// 503 with Retry-After, and the same request again will tell.
//
// # What a handler does, and what comes of it
//
//	answers below 400         committed, kept, sent; all headers to the first caller
//	writes nothing            the same: 200 without a body, as with net/http
//	answers 400 or above      sent; nothing is committed or kept, the next attempt runs
//	refuses for good          sent and kept; its writes are dropped (ErrRefused, Steps.Refuse)
//	returns a *Problem        the problem is sent; nothing is committed or kept
//	returns another error     503 with Retry-After if it may pass, otherwise 500; nothing is committed or kept
//	panics                    the panic goes on to the server, which closes the connection; nothing is committed or kept
//	streams                   it cannot: the writer has no Flush and no Hijack; informational answers and trailers are dropped
//	answers more than fits    500; nothing is committed or kept. With idempotency.Config.DropLargeBodies the first
//	                          caller gets all, and a replay has status and Location without a body, or what
//	                          idempotency.Config.Present makes of it and "Idempotent-Present: true"
//
// In mode Steps "nothing" means nothing of the step that was under way: the
// steps before it are done, and the next attempt goes on behind them.
//
// A client that goes away ends a Tx before its commit is sent, and nothing is
// kept; it does not end Steps, which are brought to their end. A handler's time
// is bounded by idempotency.Config.HandlerTimeout. Set the server's
// WriteTimeout above it.
//
// # What the draft leaves open
//
//   - The key's form. The draft wants a quoted string. A bare one is taken as
//     well, since most clients send that; "k" and k are the same key. One header,
//     1 to 255 characters of printable ASCII, no parameters. All else is 400.
//   - Where a key is needed: for POST and PATCH, unless Config says otherwise.
//     Other methods are answered with 405: they are other routes.
//   - The fingerprint: method, path, route and path values, the query without
//     regard to the order of its names, the body with its type and coding. JSON
//     is compared by its canonical form, see idempotency.FingerprintJSON, so JSON
//     that cannot be read is 400. All else counts byte for byte: a form in parts
//     whose boundary is drawn anew is another request. Other headers do not
//     count.
//   - Whose key it is: the scope's. Who asks is found out for each attempt,
//     before anything is done or replayed, so that a replay is not shown to who
//     may not see it any more.
//   - Retention: that of the operations table, 48 h by default, counted from the
//     end of the operation. After it a key is new. A handler whose own unique key
//     refuses then returns idempotency.ErrExpired, and the answer is 410.
//   - Failures: an answer of 400 or above is not kept unless the handler says
//     that it is final. So a refused request can be sent again with its key when
//     the cause has passed, and no passing fault is remembered as the result.
//   - Size: idempotency.Config.MaxBody bounds what is kept, body and chosen
//     headers together.
//   - Headers of a replay: Content-Type and Content-Encoding, without which the
//     body cannot be read; Location and ETag, or what Config.Headers names in
//     their place. Never Set-Cookie, which is one client's, nor Date. A header
//     that is kept must be UTF-8.
//   - Keys in URLs: an operation to poll is named by a sealed id, which shows
//     nothing of the key and opens for its scope only.
//
// # Errors
//
// All answers that the package makes itself are application/problem+json (RFC
// 9457). Their types lead to a page with the table of answers and to what a
// client should do.
package idempotencyhttp
