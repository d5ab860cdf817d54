package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults(10 * time.Second)
	require.NoError(t, c.validate(10*time.Second))
	require.Equal(t, 2*time.Minute, c.MaxDuration)
	require.Equal(t, 500*time.Millisecond, c.Margin)
	require.Equal(t, 30*time.Second, c.MaxWait)
	require.Equal(t, 1000, c.HighWater)
	require.NotNil(t, c.Logger)
	require.Equal(t, 5000, Config{LowWater: 5000}.withDefaults(time.Second).HighWater)
}

func TestConfigIsRefusedByName(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]Config{
		"MaxDuration":    {MaxDuration: time.Millisecond},
		"HighWater":      {HighWater: -1},
		"LowWater":       {HighWater: 10, LowWater: 11},
		"MaxBytes":       {MaxBytes: -1},
		"MaxWait":        {MaxWait: time.Second},
		"Margin":         {Margin: 3 * time.Second},
		"HandlerTimeout": {HandlerTimeout: -1},
	} {
		_, err := NewReceiver(memory(t).Queue(), c)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, field)
	}
	_, err := NewReceiver(nil, Config{})
	require.ErrorIs(t, err, ErrInvalid)
}
