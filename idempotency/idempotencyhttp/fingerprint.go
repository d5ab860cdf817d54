package idempotencyhttp

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/spanqueue/spanqueue/idempotency"
)

// fingerprint is a hash of what the request asks for: method, path, route, path
// values, query, and the body with its type. JSON is compared without regard to
// member order and white space, all else byte for byte. Other headers do not
// count: a retry may differ in them.
func fingerprint(r *http.Request, body []byte) (idempotency.Fingerprint, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return idempotency.Fingerprint{}, fmt.Errorf("the query cannot be read: %w", err)
	}
	media, coding := mediaType(r.Header), r.Header.Get("Content-Encoding")
	fp := idempotency.FingerprintBytes(body)
	if isJSON(media) && coding == "" && len(body) > 0 {
		if fp, err = idempotency.FingerprintJSON(body); err != nil {
			return idempotency.Fingerprint{}, fmt.Errorf("the body is not the JSON that its type says: %w", err)
		}
	}
	// Encode sorts by name and leaves the values of one name in their order.
	parts := []string{r.Method, media, coding, query.Encode()}
	return fp.With(append(parts, place(r)...)...), nil
}

// place is the path; behind a route, that and its path values. The path stands
// there also for routers of other makers, which set a pattern whose values the
// request does not show.
func place(r *http.Request) []string {
	if r.Pattern == "" {
		return []string{"path", r.URL.EscapedPath()}
	}
	parts := []string{"route", r.Pattern, r.URL.Path}
	for rest := r.Pattern; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return parts
		}
		name, after, _ := strings.Cut(after, "}")
		rest = after
		if name = strings.TrimSuffix(name, "..."); name != "$" {
			parts = append(parts, name, r.PathValue(name))
		}
	}
}

// mediaType is the body's type without its parameters, or as it was sent if it
// cannot be read.
func mediaType(h http.Header) string {
	sent := h.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(sent); err == nil {
		return media
	}
	return sent
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}
