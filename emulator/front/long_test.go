package front_test

import "os"

// longRun says that tests may take minutes.
func longRun() bool { return os.Getenv("SPANQUEUE_LONG") != "" }
