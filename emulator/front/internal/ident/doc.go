// Package ident makes and reads the names that the front gives out: of sessions, of transactions, and of partitions.
// They carry all that they mean, so that a front knows those of another one that ran before the same emulator.
//
// Each is base64 text around a kind, a body and a checksum. What does not parse, or whose checksum is wrong, was not
// made by a front: it is foreign.
package ident

import (
	"encoding/base64"
	"hash/crc32"
)

// kind is the first byte of what is sealed. The values are part of the names: never change one.
type kind byte

const (
	kindSession    kind = 's'
	kindReadWrite  kind = 'w'
	kindReadOnly   kind = 'o'
	kindPartition  kind = 'p'
	checksumLength      = 4
)

var encoding = base64.RawURLEncoding.Strict()

// seal wraps a body.
func seal(k kind, body []byte) string {
	b := make([]byte, 0, 1+len(body)+checksumLength)
	b = append(b, byte(k))
	b = append(b, body...)
	sum := crc32.ChecksumIEEE(b)
	b = append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	return encoding.EncodeToString(b)
}

// open is the inverse of seal; ok is false for what seal did not make.
func open(text string) (k kind, body []byte, ok bool) {
	b, err := encoding.DecodeString(text)
	if err != nil || len(b) < 1+checksumLength {
		return 0, nil, false
	}
	n := len(b) - checksumLength
	sum := crc32.ChecksumIEEE(b[:n])
	if b[n] != byte(sum>>24) || b[n+1] != byte(sum>>16) || b[n+2] != byte(sum>>8) || b[n+3] != byte(sum) {
		return 0, nil, false
	}
	return kind(b[0]), b[1:n], true
}
