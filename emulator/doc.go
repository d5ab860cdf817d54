// Package emulator finds the public Cloud Spanner emulator on this machine, starts it with a front before it that knows
// queues, and ends both.
//
//	e, err := emulator.Start(ctx, emulator.Options{})
//	if err != nil {
//		return err // lists every place that was searched and the commands that help
//	}
//	defer e.Close()
//	err = e.CreateDatabase(ctx, "projects/p/instances/test/databases/d", ddl...)
//	client, err := spanner.NewClientWithConfig(ctx, "projects/p/instances/test/databases/d",
//		spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
//
// # Terms
//
// The emulator is Google's emulator_main, a program that keeps its databases in memory. It knows no queues, and runs one
// transaction a session. The front is a server in this process to which clients talk instead; package front tells what
// it adds. The bare emulator is the one behind the front; BackendAddr leads to it.
//
// # Where it is looked for
//
// In this order, and the first that is there is used:
//
//  1. Options.Binary.
//  2. SPANNER_EMULATOR_HOST: what runs there already, and is never ended. An emulator gets a front of this process. A
//     front of the same version is used as it is; one of another version is refused.
//  3. SPANNER_EMULATOR_BINARY: the path of an emulator_main.
//  4. emulator_main in PATH.
//  5. The Cloud SDK where the Debian, RPM and snap packages, Homebrew and the installer put it.
//  6. The Cloud SDK that `gcloud info` names.
//  7. Docker, when its engine answers and has the image gcr.io/cloud-spanner-emulator/emulator. It is not pulled:
//     nothing is downloaded.
//
// What the user names (1 to 3) ends the search also when it holds no emulator.
//
// # How it is started and ended
//
// The emulator chooses its own port and tells it on standard error: two emulators told the same port both start and
// share it at random. So any number may be started at once.
//
// Nothing stays behind, however this process ends: Close, a failed start, a panic, os.Exit or SIGKILL. The emulator is
// started by a small shell command that leaves a reader on a pipe from this process and kills the emulator when the
// pipe closes. On Linux the kernel kills it besides, by the parent-death signal. What is not covered: a reader that was
// killed before this process, on a system other than Linux; a container whose reader was killed; and an engine that
// does not answer `docker rm` within some seconds of this process's end.
//
// An emulator that dies is not started again, since its databases are gone: calls answer UNAVAILABLE, Done closes, and
// Err tells the last lines that it printed.
package emulator
