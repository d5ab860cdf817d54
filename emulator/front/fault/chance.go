package fault

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// decision names a row of decisions by chance: those of one rule about one method and tag.
type decision struct{ method, tag string }

func (h *Handle) chanceLocked(c Call) bool {
	d := decision{c.Method, c.Tag}
	n := h.asked[d]
	h.asked[d] = n + 1
	return draw(h.rule.Seed, h.rule.Name, d, n) < h.rule.Probability
}

// draw is the number in [0, 1) that decides decision n of a rule about (method, tag). It depends on nothing else.
func draw(seed uint64, rule string, d decision, n int) float64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	h.Write(b[:])
	for _, s := range []string{rule, d.method, d.tag} {
		io.WriteString(h, s)
		h.Write([]byte{0})
	}
	// FNV leaves neighbouring inputs related in the high bits; the finaliser of SplitMix64 spreads them.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
