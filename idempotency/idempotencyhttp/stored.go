package idempotencyhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/spanqueue/spanqueue/idempotency"
)

// framed is the Version of the results that this package makes: status in
// Code, Content-Type in Type, Location in ResourceID, and in Body the chosen
// headers as a line of JSON, then the answer's body. Results of Version 0 have
// nothing but the body in Body: a handler's own, and those of
// idempotency.Config.Present.
const framed = 1

// maxResourceID is the length that package idempotency takes.
const maxResourceID = 1024

func toResult(a answer, headers []string) (idempotency.Result, error) {
	kept := map[string][]string{}
	keep := func(name string) error {
		values := a.header.Values(name)
		if i := slices.IndexFunc(values, func(v string) bool { return !utf8.ValidString(v) }); i >= 0 {
			return fmt.Errorf("idempotencyhttp: the answer's %s is not valid UTF-8 and cannot be kept: %q", name, values[i])
		}
		if len(values) > 0 {
			kept[http.CanonicalHeaderKey(name)] = values
		}
		return nil
	}
	// Without its coding a body that is kept cannot be read.
	for _, name := range append([]string{"Content-Encoding"}, headers...) {
		if err := keep(name); err != nil {
			return idempotency.Result{}, err
		}
	}
	line, err := json.Marshal(kept)
	if err != nil {
		return idempotency.Result{}, fmt.Errorf("idempotencyhttp: keep the headers: %w", err)
	}
	r := idempotency.Result{
		Code: int64(a.status), Type: a.header.Get("Content-Type"), Version: framed,
		Body: append(append(line, '\n'), a.body...),
	}
	if location := a.header.Get("Location"); len(location) <= maxResourceID {
		r.ResourceID = location
	}
	return r, nil
}

func fromReceipt(r idempotency.Receipt) (answer, error) {
	a := answer{status: int(r.Code), header: http.Header{}, body: r.Body}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.status < 200 || a.status > 999 {
		return answer{}, fmt.Errorf("idempotencyhttp: the stored status is %d", a.status)
	}
	switch {
	case r.Version != framed && r.Version != 0:
		return answer{}, fmt.Errorf("idempotencyhttp: the stored answer is of version %d, and this program reads %d", r.Version, framed)
	case r.BodyDropped && r.Replayed && !r.Present:
		// All that is left of the answer.
		if r.ResourceID != "" {
			a.header.Set("Location", r.ResourceID)
		}
		a.body = nil
		return a, nil
	case r.Version == framed:
		line, body, found := bytes.Cut(r.Body, []byte("\n"))
		if !found {
			return answer{}, fmt.Errorf("idempotencyhttp: the stored answer has no line of headers")
		}
		if err := json.Unmarshal(line, &a.header); err != nil {
			return answer{}, fmt.Errorf("idempotencyhttp: read the stored headers: %w", err)
		}
		a.body = body
	}
	if r.Type != "" {
		a.header.Set("Content-Type", r.Type)
	}
	return a, nil
}
