package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/schema"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	require.Equal(t, 30*time.Second, c.Lease)
	require.Equal(t, time.Minute, c.HandlerTimeout)
	require.Equal(t, 30*time.Second, c.CommitTimeout)
	require.Equal(t, 64<<10, c.MaxBody)
	require.NotNil(t, c.Logger)
	require.NotNil(t, c.MeterProvider)
	require.NoError(t, c.validate(48*time.Hour))
	require.Equal(t, time.Second, Config{Lease: time.Second}.withDefaults().Lease)
	require.Equal(t, ReaperConfig{Every: 4 * time.Hour, Batch: 500}, ReaperConfig{}.withDefaults())
}

func TestConfigIsRefusedByName(t *testing.T) {
	t.Parallel()
	const retention = 48 * time.Hour
	for _, c := range []struct {
		cfg       Config
		retention time.Duration
		want      string
	}{
		{Config{Lease: time.Millisecond}, retention, "Config.Lease is 1ms; it must be at least 100ms"},
		{Config{Lease: -1}, retention, "Config.Lease"},
		{Config{HandlerTimeout: -1}, retention, "Config.HandlerTimeout"},
		{Config{CommitTimeout: -1}, retention, "Config.CommitTimeout"},
		{Config{MaxBody: -1}, retention, "Config.MaxBody is -1; it must be 1 to 8388608"},
		{Config{MaxBody: 8<<20 + 1}, retention, "Config.MaxBody"},
		{Config{}, 30 * time.Second, "the retention is 30s; it must be longer than Config.Lease (30s)"},
		{Config{Lease: time.Second}, time.Minute, "Config.HandlerTimeout (1m0s)"},
	} {
		err := c.cfg.withDefaults().validate(c.retention)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	for _, c := range []struct {
		cfg  ReaperConfig
		want string
	}{
		{ReaperConfig{Every: time.Millisecond}, "ReaperConfig.Every is 1ms; it must be at least 1s"},
		{ReaperConfig{Batch: -1}, "ReaperConfig.Batch is -1; it must be 1 to 5000"},
		{ReaperConfig{Batch: 5001}, "ReaperConfig.Batch"},
	} {
		_, err := (&Store{}).Reaper(c.cfg)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := New(nil, schema.Operations{}, Config{})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = New(&spanner.Client{}, schema.Operations{Retention: time.Millisecond}, Config{})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "Retention")
	var field *schema.FieldError
	require.ErrorAs(t, err, &field)
	_, err = New(&spanner.Client{}, schema.Operations{Retention: time.Minute}, Config{})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestMayRunAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Internal, codes.Unknown} {
		require.True(t, mayRunAgain(status.Error(code, "x"), 3), code)
	}
	for _, code := range []codes.Code{codes.AlreadyExists, codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange,
		codes.PermissionDenied, codes.ResourceExhausted, codes.Unauthenticated} {
		require.False(t, mayRunAgain(status.Error(code, "x"), 1), code)
	}
	require.True(t, mayRunAgain(status.Error(codes.NotFound, "x"), 1))
	require.False(t, mayRunAgain(status.Error(codes.NotFound, "x"), 2))
	require.False(t, mayRunAgain(status.Error(codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8"), 1))
	require.True(t, mayRunAgain(context.DeadlineExceeded, 1))
	require.True(t, mayRunAgain(errors.Join(errCommitTimeout, context.Canceled), 1))
}
