// Package rowcodec turns a queue's rows into Go values and back: key columns into the parts of a spanner.Key, payloads
// into bytes. It is where a value that could change on its way is refused instead.
//
// Key parts have one Go type per column type: INT64 int64, STRING string, BYTES []byte, BOOL bool, TIMESTAMP time.Time,
// DATE civil.Date, NUMERIC big.Rat, UUID uuid.UUID. A NULL part is the matching spanner.Null type, so that the key can
// be handed to Google's client as it is.
//
// Payloads are bytes on our side. JSON keeps its digits: it is never decoded into a float64.
package rowcodec
