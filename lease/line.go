package lease

import "time"

// line is the counted list of the messages that wait for a slot, in the order they came.
type line struct {
	entries []*entry
	bytes   int64
}

func (l *line) len() int { return len(l.entries) }

func (l *line) push(e *entry) {
	l.entries = append(l.entries, e)
	l.bytes += size(e)
}

// pushFront puts back what was taken and not used.
func (l *line) pushFront(e *entry) {
	l.entries = append([]*entry{e}, l.entries...)
	l.bytes += size(e)
}

// take removes and returns the first message that is worth starting, or nil.
func (l *line) take(t terms, now time.Time) *entry {
	for i, e := range l.entries {
		if now.Before(e.startUntil(t)) {
			if i == 0 {
				l.entries[0] = nil
				l.entries = l.entries[1:]
			} else {
				l.entries = append(l.entries[:i:i], l.entries[i+1:]...)
			}
			l.bytes -= size(e)
			return e
		}
	}
	return nil
}

// sweep removes the entries that wait no longer.
func (l *line) sweep() {
	kept := make([]*entry, 0, len(l.entries))
	l.bytes = 0
	for _, e := range l.entries {
		if e.place == waiting {
			kept = append(kept, e)
			l.bytes += size(e)
		}
	}
	l.entries = kept
}

func size(e *entry) int64 { return int64(len(e.message.Payload)) }
