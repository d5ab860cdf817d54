package processor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFaultMatrix meets every RPC that a processor makes with every fault that the front knows, for every kind of handler.
//
//	matrix_sites_test.go   the rows: the RPCs, and what has to happen for each to be made
//	matrix_faults_test.go  the columns: the faults
//	matrix_plan_test.go    what a seed changes about a cell
//	matrix_cell_test.go    one cell: a database of its own, a few messages, one fault
//	matrix_work_test.go    the handlers
//	matrix_judge_test.go   what must hold in the end, read from the emulator itself, past the front and the library
//	matrix_witness_test.go that no RPC which the processors made is without a row
//	matrix_lab_test.go     the emulators that the cells share, and who looks for goroutines that a cell has left
//	matrix_grid_test.go    the printed table
//
// A cell fails when its fault was not applied. It is no parallel test: it keeps the processors busy by itself.
func TestFaultMatrix(t *testing.T) {
	seeds := []uint64{0}
	if os.Getenv("SPANQUEUE_LONG") != "" {
		seeds = []uint64{0, 1, 2, 3, 4}
	}
	cells := matrixCells(seeds)
	if only := os.Getenv("SPANQUEUE_MATRIX"); only != "" { // to look at some cells: part of a cell's name
		cells = filterCells(cells, only)
	} else {
		require.Len(t, cells, matrixSize*len(seeds), "the matrix has lost or gained cells: if that is meant, change matrixSize")
	}
	l := newLab(t, labEmulators)
	began := time.Now()
	results := l.runAll(cells)
	require.Empty(t, l.witness.unmet(), "the processor makes RPCs that no row of the matrix is about")
	var again []string
	for _, r := range results {
		if r.again > 0 {
			again = append(again, fmt.Sprint(r.cell))
		}
	}
	t.Logf("%d cells in %v; run again because the fault was not applied: %d %v\n%s",
		len(cells), time.Since(began).Round(100*time.Millisecond), len(again), again, gridOf(results))
}

// matrixSize is the number of cells for each seed.
const matrixSize = 1842 + 28

func matrixCells(seeds []uint64) []*cell {
	var cells []*cell
	for _, k := range handlerKinds {
		for _, s := range sitesOf(k) {
			for _, f := range matrixFaults {
				if !f.fits(s) {
					continue
				}
				for _, seed := range seeds {
					cells = append(cells, &cell{kind: k, site: s, fault: f, seed: seed})
				}
			}
		}
	}
	return cells
}

func filterCells(cells []*cell, part string) []*cell {
	var some []*cell
	for _, c := range cells {
		if strings.Contains(fmt.Sprint(c), part) {
			some = append(some, c)
		}
	}
	return some
}
