package idempotencyhttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/spanqueue/spanqueue/idempotency"
)

// recorder is the http.ResponseWriter of one run of a handler. It keeps the
// answer until Commit has answered, so it can neither flush nor be hijacked:
// http.ResponseController says http.ErrNotSupported.
type recorder struct {
	limit  int
	header http.Header
	answer answer
	wrote  bool
	full   bool // the body is larger than limit
}

func newRecorder(limit int) *recorder {
	return &recorder{limit: limit, header: http.Header{}}
}

func (w *recorder) Header() http.Header { return w.header }

// WriteHeader fixes status and headers, as net/http does. Informational
// answers are dropped: they would be bytes before the commit.
func (w *recorder) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("idempotencyhttp: invalid status code %d", status))
	case w.wrote || status < 200:
		return
	}
	w.wrote = true
	w.answer.status = status
	w.answer.header = w.header.Clone()
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !bodyAllowed(w.answer.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if len(w.answer.body)+len(b) > w.limit {
		w.full = true
		return 0, w.tooLarge()
	}
	w.answer.body = append(w.answer.body, b...)
	return len(b), nil
}

func (w *recorder) tooLarge() error {
	return fmt.Errorf("%w: the answer's body is larger than Config.MaxAnswer, %d bytes", idempotency.ErrTooLarge, w.limit)
}

// finish returns what the handler has answered. One that wrote nothing has
// answered 200 without a body, as with net/http.
func (w *recorder) finish() (answer, error) {
	if w.full {
		return answer{}, w.tooLarge() // also if the handler has ignored it
	}
	w.WriteHeader(http.StatusOK)
	w.answer.header.Del("Trailer") // there are none: the answer goes out whole
	if _, set := w.answer.header["Content-Type"]; !set && len(w.answer.body) > 0 {
		w.answer.header.Set("Content-Type", http.DetectContentType(w.answer.body))
	}
	return w.answer, nil
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send writes the answer to w. It is the only place where an operation's
// answer goes to a client.
func (a answer) send(w http.ResponseWriter) {
	h := w.Header()
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		h[name] = a.header[name]
	}
	if bodyAllowed(a.status) {
		h.Set("Content-Length", fmt.Sprint(len(a.body)))
	}
	w.WriteHeader(a.status)
	if bodyAllowed(a.status) {
		_, _ = w.Write(a.body) // a client that has gone asks again
	}
}
