// Package backend keeps sessions of the emulator and begins transactions on them.
//
// The emulator keeps one transaction a session, so every transaction gets a session of its own for its life. A Pool
// has the free sessions of each database. Three rules hold for them:
//
//   - A session in the pool has no open read-write transaction. Who takes one and begins a transaction ends it before
//     the session goes back.
//   - A session with an open transaction is never deleted: the emulator would keep the locks, for ever. If a rollback
//     cannot be delivered, the session is set aside and the rollback tried again.
//   - The emulator forgets sessions after an hour without use, and all of them when it ends. A pooled session that is
//     unknown is dropped, and the call made again on a new one. Names come back: after a restart, and in a database that
//     was dropped and created again. So sessions from before are never taken for those of the same name.
package backend
