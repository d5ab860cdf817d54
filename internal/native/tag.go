package native

// maxTag is the length that Spanner allows a tag.
const maxTag = 50

// tag makes a transaction tag that Spanner takes: printable ASCII, 50 characters at most.
func tag(text string) string {
	t := []byte(text)
	for i, c := range t {
		if c < ' ' || c > '~' {
			t[i] = '?'
		}
	}
	return string(t[:min(len(t), maxTag)])
}
