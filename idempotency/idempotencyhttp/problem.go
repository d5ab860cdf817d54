package idempotencyhttp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Problem is an answer in the form of RFC 9457, application/problem+json. As
// an error of a handler or of Config.Scope it is sent as it is, and nothing is
// kept: neither the handler's writes nor the answer.
type Problem struct {
	// Type is a URI that says what kind of problem it is. Empty: about:blank.
	Type string `json:"type,omitempty"`
	// Title is for people. Empty: the text of the status.
	Title string `json:"title,omitempty"`
	// Status is the HTTP status. Zero: 500.
	Status int `json:"status"`
	// Detail is about this one occurrence, for the client to see.
	Detail string `json:"detail,omitempty"`
	// Header is sent besides, such as WWW-Authenticate or Retry-After.
	Header http.Header `json:"-"`
}

// Error says what the client is told.
func (p *Problem) Error() string {
	p = p.withDefaults()
	if p.Detail == "" {
		return fmt.Sprintf("%d %s", p.Status, p.Title)
	}
	return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail)
}

func (p *Problem) withDefaults() *Problem {
	c := *p
	setDefault(&c.Status, http.StatusInternalServerError)
	setDefault(&c.Title, http.StatusText(c.Status))
	return &c
}

func (p *Problem) answer() answer {
	p = p.withDefaults()
	body, err := json.Marshal(p)
	if err != nil { // strings and a number: it does not happen
		body = []byte("{}")
	}
	a := answer{status: p.Status, header: http.Header{}, body: body}
	maps.Copy(a.header, p.Header)
	a.header.Set("Content-Type", "application/problem+json")
	return a
}

// page explains each kind of problem under its name.
const page = "https://github.com/spanqueue/spanqueue/blob/main/docs/idempotency-http.md#"

func newProblem(status int, kind, title, detail string) *Problem {
	return &Problem{Type: page + kind, Title: title, Status: status, Detail: detail}
}

// after adds a Retry-After header: whole seconds, rounded up, one at least.
func (p *Problem) after(d time.Duration) *Problem {
	if p.Header == nil {
		p.Header = http.Header{}
	}
	p.Header.Set("Retry-After", fmt.Sprint(max(1, int64((d+time.Second-1)/time.Second))))
	return p
}
