// Package front is a gRPC server before the public Cloud Spanner emulator. Its clients see a Spanner on which many
// transactions run at once; behind it is the emulator, which keeps one transaction a session and one read-write
// transaction a database.
package front
