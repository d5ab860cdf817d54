package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func names() []string { return slices.Sorted(maps.Keys(wanted)) }

// print shows the slots, one a line, and for each schedule what came of it.
func (t *teller) print(found []history) {
	table := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "\nSLOT")
	slots := map[time.Time]bool{}
	for _, h := range found {
		fmt.Fprint(table, "\t", strings.ToUpper(h.name))
		for _, slot := range h.slots() {
			slots[slot] = true
		}
	}
	for _, slot := range slices.SortedFunc(maps.Keys(slots), time.Time.Compare) {
		fmt.Fprint(table, "\n", slot.Format(time.TimeOnly))
		for _, h := range found {
			fmt.Fprint(table, "\t", h.fate(slot))
		}
	}
	fmt.Fprintln(table)
	table.Flush()
	ran, skipped := 0, 0
	for _, h := range found {
		for _, slot := range h.slots() {
			ran += len(h.ran[slot])
			skipped += h.skips(slot)
		}
	}
	t.say("\n%d runs, %d slots skipped", ran, skipped)
}

// fate says in words what became of a slot.
func (h history) fate(slot time.Time) string {
	var words []string
	for _, r := range h.ran[slot] {
		words = append(words, fmt.Sprintf("%s, %v late", r.worker, r.late.Round(10*time.Millisecond)))
	}
	for range h.skips(slot) {
		words = append(words, "skipped")
	}
	return strings.Join(words, " and ")
}
