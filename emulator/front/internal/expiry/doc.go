// Package expiry deletes the rows that row deletion policies let go: the emulator accepts the policies and never acts on
// them.
//
// A Sweeper looks at every database that it was told of, once an interval. The policies are read from the database each
// time, so that nothing need be told of schema changes. A row has expired when the time in its column, plus the days of
// the policy, is not after the database's clock; a row without a time there never does.
//
// # How rows are deleted
//
// Whether a table has expired rows is asked outside of any turn. If it has, they are read and deleted in transactions of
// at most 500 rows, each with a turn of its own, so that others come in between. A batch that the database refuses,
// because it makes too many mutations of it, is halved; a row that is refused alone is left alone, and those around it
// are not. (Where children or foreign keys could forbid it, the emulator does not accept the policy.)
//
// # Failure rules
//
// What fails is logged and tried again an interval later. A database that is gone is forgotten.
package expiry
