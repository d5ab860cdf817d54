package idempotencyhttp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/spanqueue/spanqueue/idempotency"
)

// seal turns operations into ids for URLs and back. An id is the same for the
// same operation, so that every duplicate is told the same one; it shows
// nothing of the key, and opens only for the scope it was made for.
//
// It is encryption with a synthetic IV (as RFC 5297, with HMAC-SHA256 in place
// of CMAC): the IV is a MAC of all that goes in, and is checked when it is
// opened. Equal operations give equal ids, which is what is wanted.
type seal struct {
	mac   []byte
	block cipher.Block
}

func newSeal(secret []byte) *seal {
	block, err := aes.NewCipher(derive(secret, "encrypt"))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	return &seal{mac: derive(secret, "authenticate"), block: block}
}

func derive(secret []byte, purpose string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("spanqueue/idempotencyhttp " + purpose))
	return h.Sum(nil)
}

func (s *seal) close(op idempotency.Operation) string {
	iv := s.iv(op)
	text := append(binary.AppendUvarint(nil, uint64(len(op.Name))), op.Name+op.Key...)
	cipher.NewCTR(s.block, iv).XORKeyStream(text, text)
	return base64.RawURLEncoding.EncodeToString(append(iv, text...))
}

// open returns the operation that the id names for a caller with the scope.
func (s *seal) open(scope, id string) (idempotency.Operation, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(raw) < aes.BlockSize {
		return idempotency.Operation{}, false
	}
	iv, text := raw[:aes.BlockSize], raw[aes.BlockSize:]
	cipher.NewCTR(s.block, iv).XORKeyStream(text, text)
	length, n := binary.Uvarint(text)
	if n <= 0 || length > uint64(len(text)-n) {
		return idempotency.Operation{}, false
	}
	text = text[n:]
	op := idempotency.Operation{Scope: scope, Name: string(text[:length]), Key: string(text[length:])}
	return op, hmac.Equal(iv, s.iv(op))
}

func (s *seal) iv(op idempotency.Operation) []byte {
	h := hmac.New(sha256.New, s.mac)
	for _, part := range []string{op.Scope, op.Name, op.Key} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:aes.BlockSize]
}
