// Package settle runs one guarded transaction until it is known what became of it: the acknowledgement of one delivery,
// and something that is to happen exactly when it is acknowledged.
//
// # States
//
//	run ── ack misses ──────────────────────────────► NotHeld, or Settled when a commit of ours went before
//	 │ ├── body fails ──────────────────────────────► BodyFailed (rolled back)
//	 │ ├── aborted MaxRuns times, or for RunTime ───► AbortedTooOften (rolled back)
//	 │ └── no answer before a commit was sent ──────► Unreachable (nothing was kept)
//	 ▼
//	commit sent ── answered ────────────────────────► Committed
//	 │
//	 ▼ any other error
//	unknown ── probe: gone, or another DeliverTime ─► Settled
//	 │      ── probe: there, and the error is a refusal of what was written ─► Refused
//	 │      ── no answer until ResolveTimeout ──────► Unresolved
//	 ▼ probe: there
//	run again, after a pause that doubles each time, up to 5 s
//
// # Why running again is safe
//
// The first commit may still land after the probe has read the delivery as present. Both runs assert the same delivery,
// (key, DeliverTime), so that at most one of them commits; the other misses.
package settle
