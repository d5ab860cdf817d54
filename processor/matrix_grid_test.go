package processor_test

import (
	"fmt"
	"strings"
	"time"
)

// gridOf prints the results as a table: a row for each RPC of each kind of handler, a column for each fault. An entry is
// the seconds that the slowest seed took, or what went wrong; "-" is a fault that does not apply.
func gridOf(results []cellResult) string {
	type place struct {
		kind        handlerKind
		site, fault string
	}
	took := make(map[place]time.Duration)
	failed := make(map[place]bool)
	for _, r := range results {
		at := place{r.cell.kind, r.cell.site.name, r.cell.fault.name}
		took[at] = max(took[at], r.took)
		failed[at] = failed[at] || r.err != nil
	}
	var b strings.Builder
	for i, f := range matrixFaults {
		fmt.Fprintf(&b, "%3d %s\n", i+1, f.name)
	}
	fmt.Fprintf(&b, "%-26s", "")
	for i := range matrixFaults {
		fmt.Fprintf(&b, "%6d", i+1)
	}
	for _, k := range handlerKinds {
		for _, s := range sitesOf(k) {
			fmt.Fprintf(&b, "\n%-26s", fmt.Sprintf("%s %s", k, s.name))
			for _, f := range matrixFaults {
				at := place{k, s.name, f.name}
				d, run := took[at]
				switch {
				case !run:
					fmt.Fprintf(&b, "%6s", "-")
				case failed[at]:
					fmt.Fprintf(&b, "%6s", "FAIL")
				default:
					fmt.Fprintf(&b, "%6.1f", d.Seconds())
				}
			}
		}
	}
	return b.String()
}
