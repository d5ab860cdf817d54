package processor_test

import (
	"os"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "" {
		os.Exit(child())
	}
	emulatortest.Main(m)
}
