package idempotency

import (
	"encoding/json"
	"fmt"
)

// journal is the list of steps that an operation has passed, with their
// results: the recovery points of the record, oldest first.
type journal []entry

// entry is one step. An open entry is an outside call that may have been made
// and whose result is not known; only the last entry can be open.
type entry struct {
	Name string `json:"name"`
	Kind kind   `json:"kind"`
	Open bool   `json:"open,omitempty"`
	// Value is the step's result as encoding/json wrote it.
	Value json.RawMessage `json:"value,omitempty"`
}

// maxJournal bounds the journal in bytes, as it is encoded: a cell of the
// database holds 10 MiB.
const maxJournal = 10<<20 - 4096

// room is what the results of further steps may have, in bytes.
func (j journal) room() int {
	const aroundValue = 64 // the names of the members, and what is between them
	used := 0
	for _, e := range j {
		used += aroundValue + 6*len(e.Name) + len(e.Value) // a character of a name may need six
	}
	return maxJournal - used - aroundValue - 6*maxStepName
}

type kind string

const (
	local   kind = "local"
	outside kind = "outside"
)

func parseJournal(text []byte) (journal, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("read the recorded steps: %w", err)
	}
	return j, nil
}

// encode returns nil for a journal without entries.
func (j journal) encode() ([]byte, error) {
	if len(j) == 0 {
		return nil, nil
	}
	return json.Marshal(j)
}

// point is the name of the recovery point: the last step that has passed.
func (j journal) point() string {
	for i := len(j) - 1; i >= 0; i-- {
		if !j[i].Open {
			return j[i].Name
		}
	}
	return ""
}

// at returns step n. It is an error if another step stands there: the code
// that runs now is not the code that wrote the record.
func (j journal) at(n int, name string, k kind) (entry, bool, error) {
	if n >= len(j) {
		return entry{}, false, nil
	}
	if e := j[n]; e.Name != name || e.Kind != k {
		return entry{}, false, fmt.Errorf("%w: step %d is %s %q and the record has %s %q", ErrDiverged, n+1, k, name, e.Kind, e.Name)
	}
	return j[n], true, nil
}

// with returns a copy in which e is step n.
func (j journal) with(n int, e entry) journal {
	return append(append(journal(nil), j[:n]...), e)
}
