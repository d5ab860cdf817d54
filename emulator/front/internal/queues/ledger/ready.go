package ledger

import "sort"

// ready holds the ready messages in the order in which they became so. Every message gets a number when it comes in,
// so that a taker can remember how far it has looked. Taking leaves a hole; holes are closed when they are the
// majority.
type ready struct {
	items []readyItem // by seq, rising
	holes int
	last  uint64 // the number given last
}

type readyItem struct {
	seq uint64
	m   *message // nil: a hole
}

func (r *ready) push(m *message) {
	r.last++
	m.seq = r.last
	r.items = append(r.items, readyItem{seq: r.last, m: m})
}

// after returns the index of the first item with a number above seq.
func (r *ready) after(seq uint64) int {
	return sort.Search(len(r.items), func(i int) bool { return r.items[i].seq > seq })
}

func (r *ready) remove(seq uint64) {
	i := r.after(seq - 1)
	r.items[i].m = nil
	r.holes++
	if r.holes*2 <= len(r.items) {
		return
	}
	kept := r.items[:0]
	for _, item := range r.items {
		if item.m != nil {
			kept = append(kept, item)
		}
	}
	clear(r.items[len(kept):])
	r.items, r.holes = kept, 0
}
