package queues

import (
	"slices"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// receiver is one open RECEIVE as its reader sees it. Its stream asks for a batch, gets one, deals with it, and asks
// again.
type receiver struct {
	taker  *ledger.Taker
	batch  chan []backing.Message // holds the one batch that was asked for; written by the reader
	failed chan error             // holds one error; written by the reader

	// Guarded by the reader's mu.
	want int // how many messages it waits for; 0: it has enough to do
	left bool
}

// join adds a receiver. It must leave.
func (r *reader) join() *receiver {
	rec := &receiver{
		taker:  r.ledger.NewTaker(),
		batch:  make(chan []backing.Message, 1),
		failed: make(chan error, 1),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.receivers = append(r.receivers, rec)
	return rec
}

// leave takes a receiver out. What it was given and has not taken out of its channel goes back.
func (r *reader) leave(rec *receiver) {
	r.mu.Lock()
	rec.left = true
	r.receivers = slices.DeleteFunc(r.receivers, func(other *receiver) bool { return other == rec })
	r.mu.Unlock()
	select {
	case messages := <-rec.batch:
		r.putBack(rec, messages)
	default:
	}
}

func (r *reader) putBack(rec *receiver, messages []backing.Message) {
	for _, m := range messages {
		rec.taker.PutBack(m.ID)
	}
	r.rouse()
}

// ask requests a batch of at most n messages.
func (r *reader) ask(rec *receiver, n int) {
	r.mu.Lock()
	rec.want = n
	r.mu.Unlock()
	r.rouse()
}

// give hands a receiver its batch.
func (r *reader) give(rec *receiver, messages []backing.Message) {
	r.mu.Lock()
	left := rec.left
	if !left {
		rec.want = 0
		rec.batch <- messages // has room: one is asked for at a time
	}
	r.mu.Unlock()
	if left {
		r.putBack(rec, messages)
	}
}

// waiting returns the receivers that wait, beginning with the one that was served longest ago.
func (r *reader) waiting() []*receiver {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting []*receiver
	for _, rec := range r.receivers {
		if rec.want > 0 {
			waiting = append(waiting, rec)
		}
	}
	return waiting
}

func (r *reader) wanted() bool { return len(r.waiting()) > 0 }

// served moves a receiver to the end of the line.
func (r *reader) served(rec *receiver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.receivers, rec); i >= 0 {
		r.receivers = append(slices.Delete(r.receivers, i, i+1), rec)
	}
}

// fail ends the receivers of this moment with the error. Those that come later try anew.
func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.receivers {
		rec.want = 0
		select {
		case rec.failed <- err:
		default: // it has one already
		}
	}
}
