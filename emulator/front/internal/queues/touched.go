package queues

import "strings"

// Where a commit may have added messages is told in text, so that the front can carry it from a statement or mutation
// to the commit without knowing more about it: the queue's name in lower case, then one of
//
//	""            by statement: what is new stands at the end of the log
//	"\x00" + key  by mutation, under this key
//	"\x01"        by mutation, under a key that the database completes: anywhere in the log
const (
	byKey    = "\x00"
	anywhere = "\x01"
)

// news is what a reader has not looked at yet.
type news struct {
	tail bool     // the end of the log
	all  bool     // the whole log
	keys []string // rows by key
}

func readTouched(touched string) (queue string, n news) {
	if queue, key, ok := strings.Cut(touched, byKey); ok {
		return queue, news{keys: []string{key}}
	}
	if queue, ok := strings.CutSuffix(touched, anywhere); ok {
		return queue, news{all: true}
	}
	return touched, news{tail: true}
}

func (n *news) add(m news) {
	n.tail = n.tail || m.tail
	n.all = n.all || m.all
	n.keys = append(n.keys, m.keys...)
	if len(n.keys) > maxKeys { // nobody looks for a while: reading the log is cheaper then, and bounded
		n.all, n.keys = true, nil
	}
}

// maxKeys bounds what is remembered, and the size of a read by key.
const maxKeys = 10_000

func (n news) any() bool { return n.tail || n.all || len(n.keys) > 0 }
