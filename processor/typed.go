package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/protobuf/proto"
)

// ErrUndecodable is wrapped by the error of a payload that could not be decoded. A handler that decodes by itself, such as a
// Batch or a Call, may return an error that wraps it: the message is dead-lettered at once, as undecodable.
var ErrUndecodable = errors.New("processor: the payload could not be decoded")

// Typed makes a handler as Tx does, of a function that gets the payload decoded. A payload that does not decode is moved
// to the dead letters at once, byte for byte, without a transaction of the handler's. JSON and Proto are decoders. The
// value is decoded once for a delivery: a run of the function must not change what a later run will read.
func Typed[T any](decode func(payload []byte) (T, error),
	f func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, v T) error) Handler {
	return typedHandler[T]{decode: decode, f: f}
}

// JSON decodes a payload into a T by encoding/json, whose rules for numbers hold: an integer field takes its digits exactly,
// an any rounds them to a float64.
func JSON[T any](payload []byte) (T, error) {
	var v T
	err := json.Unmarshal(payload, &v)
	return v, err
}

// Proto decodes a payload into a new message of type T, which is a pointer to a generated message.
func Proto[T proto.Message](payload []byte) (T, error) {
	var zero T
	v := reflect.New(reflect.TypeOf(zero).Elem()).Interface().(T)
	return v, proto.Unmarshal(payload, v)
}

type typedHandler[T any] struct {
	one
	decode func([]byte) (T, error)
	f      func(context.Context, *spanner.ReadWriteTransaction, *queue.Message, T) error
}

func (h typedHandler[T]) check() error {
	if h.decode == nil || h.f == nil {
		return errors.New("the decoder and the function must both be set")
	}
	return nil
}

func (h typedHandler[T]) tune(*Config) {}

func (h typedHandler[T]) run(p *Processor, ds []*delivery) {
	v, err := h.decoded(ds[0].message.Payload)
	if err != nil {
		ds[0].outcome = p.failed(ds[0], DeadLetter(err))
		return
	}
	txHandler{f: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		return h.f(ctx, tx, m, v)
	}}.run(p, ds)
}

func (h typedHandler[T]) decoded(payload []byte) (v T, err error) {
	err = apart(func() (err error) {
		v, err = h.decode(payload)
		return err
	})
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrUndecodable, err)
	}
	return v, nil
}
