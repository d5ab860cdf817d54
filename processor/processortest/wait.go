package processortest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errEnded says that a processor has ended before it was stopped.
var errEnded = errors.New("ended")

// wait looks again and again until done, and gives up at the end of ctx or of the processor, whose result stays in ended.
func wait(ctx context.Context, ended chan error, done func() (bool, error)) error {
	pause := firstPause
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case err := <-ended:
			timer.Stop()
			ended <- err
			return errEnded
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("not done within %v", patience)
		}
		pause = min(2*pause, lastPause)
	}
}
