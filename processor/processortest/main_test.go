package processortest_test

import (
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }
