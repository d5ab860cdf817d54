// Package emulatortest gives a test a database of its own on the Spanner emulator, in one line:
//
//	func TestMain(m *testing.M) { emulatortest.Main(m) }
//
//	func TestTransfer(t *testing.T) {
//		t.Parallel()
//		client := emulatortest.Database(t, `CREATE TABLE Account (...) PRIMARY KEY (...)`).Client(t)
//		...
//	}
//
// # Terms
//
// The shared emulator is one process for the whole test binary. The first test that asks for a database starts it, in
// some 20 milliseconds, and Main ends it. It is always a fresh one: SPANNER_EMULATOR_HOST and SPANNER_EMULATOR_BINARY
// are neither read nor set. A test that needs an emulator with options of its own calls New.
//
// A database is created for one test and dropped when the test has ended. It has an instance of its own, so that any
// number of tests may run in parallel: the emulator takes no more than 100 databases an instance.
//
// # Failures
//
// A test that cannot have its emulator or its database fails at once, with what was tried and what helps. Main fails
// the run when goroutines are left after all tests have passed.
package emulatortest
