package tvf

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Defaults of arguments that are left out or NULL. The service does not say what its own are.
const (
	// DefaultMaxDuration is the duration that the service advises.
	DefaultMaxDuration = 20 * time.Minute
	// DefaultMaxBatchSize is this front's choice.
	DefaultMaxBatchSize = 100
)

// ReceiveArguments are the arguments of RECEIVE_<Queue>.
type ReceiveArguments struct {
	// MaxDuration is how long the stream stays open; it is positive.
	MaxDuration time.Duration
	// MaxBatchSize is how many messages are taken at a time; it is positive.
	MaxBatchSize int64
	// Priority is kept as written and changes nothing.
	Priority string
}

// Receive evaluates the arguments of a call of RECEIVE_<Queue>.
func (s *Statement) Receive(params Params) (ReceiveArguments, error) {
	r := ReceiveArguments{MaxDuration: DefaultMaxDuration, MaxBatchSize: DefaultMaxBatchSize}
	for _, a := range s.arguments {
		var err error
		switch strings.ToLower(a.name) {
		case "max_duration":
			err = r.readDuration(a, params)
		case "max_batch_size":
			err = r.readBatchSize(a, params)
		case "priority":
			r.Priority, err = readPriority(a, params)
		default:
			err = fmt.Errorf("%s%s has no argument %s; it has max_duration, max_batch_size and priority", s.Function, s.Queue, a.name)
		}
		if err != nil {
			return ReceiveArguments{}, err
		}
	}
	return r, nil
}

func (r *ReceiveArguments) readDuration(a argument, params Params) error {
	text, ok, err := scalar("max_duration", spannerpb.TypeCode_STRING, a.value, params)
	if err != nil || !ok {
		return err
	}
	r.MaxDuration, err = ParseDuration(text)
	if err != nil {
		return fmt.Errorf("max_duration: %w", err)
	}
	return nil
}

func (r *ReceiveArguments) readBatchSize(a argument, params Params) error {
	text, ok, err := scalar("max_batch_size", spannerpb.TypeCode_INT64, a.value, params)
	if err != nil || !ok {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("max_batch_size is %s; it must be an INT64 of 1 or more", text)
	}
	r.MaxBatchSize = n
	return nil
}

// readPriority accepts both types that a priority could have; the documentation names none.
func readPriority(a argument, params Params) (string, error) {
	text, _, err := scalar("priority", spannerpb.TypeCode_STRING, a.value, params)
	if err == nil {
		return text, nil
	}
	if text, _, asInt := scalar("priority", spannerpb.TypeCode_INT64, a.value, params); asInt == nil {
		return text, nil
	}
	return "", err
}

// maxDuration keeps the arithmetic of end times safe; no stream lives that long.
const maxDuration = 365 * 24 * time.Hour

var units = map[string]time.Duration{
	"ms": time.Millisecond,
	"s":  time.Second,
	"m":  time.Minute,
	"h":  time.Hour,
}

// ParseDuration reads a duration such as '30s', '20m' or '1m 30s'. Case and spaces do not matter.
func ParseDuration(text string) (time.Duration, error) {
	refuse := func() (time.Duration, error) {
		return 0, fmt.Errorf("%q is not a duration; it is written as numbers with a unit (ms, s, m or h), such as '30s' or '20m', is positive and at most %v", text, maxDuration)
	}
	rest := strings.ToLower(strings.Join(strings.Fields(text), ""))
	if rest == "" {
		return refuse()
	}
	var total time.Duration
	for rest != "" {
		digits := strings.TrimLeft(rest, "0123456789.")
		number := rest[:len(rest)-len(digits)]
		rest = strings.TrimLeft(digits, "abcdefghijklmnopqrstuvwxyz")
		unit, known := units[digits[:len(digits)-len(rest)]]
		if !known {
			return refuse()
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || n*float64(unit) > float64(maxDuration) {
			return refuse()
		}
		total += time.Duration(n * float64(unit))
		if total > maxDuration {
			return refuse()
		}
	}
	if total <= 0 {
		return refuse()
	}
	return total, nil
}
