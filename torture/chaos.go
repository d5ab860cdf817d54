package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// How often the machines fail, and for how long.
const (
	killMin, killMax     = 1000 * time.Millisecond, 2200 * time.Millisecond
	freezeMin, freezeMax = 3 * time.Second, 7 * time.Second
	frozenMax            = leaseLength * 3 / 2
	pauseMin, pauseMax   = 4 * time.Second, 9 * time.Second
	pausedMax            = 1500 * time.Millisecond
)

// chaos kills and freezes workers and pauses the emulator.
type chaos struct {
	crew       *crew
	recoveries *recoveries
	pause      func() (resume func(), err error) // the emulator
	seed       uint64

	kills     atomic.Int64 // with a message in a handler or a Commit under way
	idleKills atomic.Int64 // of workers that were at nothing
	inCommit  atomic.Int64 // of kills: a Commit was under way
	freezes   atomic.Int64
	pauses    atomic.Int64
}

// run goes on until ctx ends. When it returns, nothing is frozen or paused any more.
func (c *chaos) run(ctx context.Context) error {
	errs := make(chan error, 3)
	var all sync.WaitGroup
	every := func(stream uint64, least, most time.Duration, do func(context.Context, *rand.Rand) error) {
		dice := rand.New(rand.NewPCG(c.seed, stream))
		all.Go(func() {
			for sleep(ctx, between(dice, least, most)) == nil {
				if err := do(ctx, dice); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	every(101, killMin, killMax, c.killOne)
	every(102, freezeMin, freezeMax, c.freezeOne)
	every(103, pauseMin, pauseMax, c.pauseEmulator)
	all.Wait()
	close(errs)
	return <-errs
}

func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)))
}

func (c *chaos) killOne(ctx context.Context, dice *rand.Rand) error {
	p := c.crew.pick(ctx, dice)
	if p == nil || ctx.Err() != nil {
		return nil
	}
	t := c.crew.kill(p)
	if t.busy() {
		c.kills.Add(1)
	} else {
		c.idleKills.Add(1)
	}
	c.recoveries.killed(time.Now(), p.name, t)
	if t.commits > 0 {
		c.inCommit.Add(1)
	}
	return c.crew.start()
}

func (c *chaos) freezeOne(ctx context.Context, dice *rand.Rand) error {
	p := c.crew.pick(ctx, dice)
	if p == nil || freeze(p.cmd.Process) != nil { // it has just been killed
		return nil
	}
	defer c.recoveries.trouble()()
	c.freezes.Add(1)
	_ = sleep(ctx, between(dice, 100*time.Millisecond, frozenMax))
	_ = thaw(p.cmd.Process) // fails only when it was killed meanwhile
	return nil
}

func (c *chaos) pauseEmulator(ctx context.Context, dice *rand.Rand) error {
	resume, err := c.pause()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // and the verdict says that nothing was proved about it
	}
	if err != nil {
		return err
	}
	defer c.recoveries.trouble()()
	defer resume()
	c.pauses.Add(1)
	_ = sleep(ctx, between(dice, 100*time.Millisecond, pausedMax))
	return nil
}
