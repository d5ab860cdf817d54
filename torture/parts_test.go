package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	good := func() findings {
		return findings{
			sent:    map[string]bool{"T1": true, "T2": true, "B1": true},
			noted:   []string{"T1", "T2", "B1"},
			effects: map[string]int64{"T1": 1, "T2": 1, "B1": 1},
		}
	}
	for name, c := range map[string]struct {
		change             func(*findings)
		lost, twice, wrong int
	}{
		"all is well":          {func(*findings) {}, 0, 0, 0},
		"one is lost":          {func(f *findings) { delete(f.effects, "T1") }, 1, 0, 0},
		"one is zero":          {func(f *findings) { f.effects["T1"] = 0 }, 1, 0, 0},
		"one happened thrice":  {func(f *findings) { f.effects["T1"] = 3 }, 0, 2, 0},
		"lost and twice":       {func(f *findings) { delete(f.effects, "T1"); f.effects["B1"] = 2 }, 1, 1, 0},
		"an effect of nothing": {func(f *findings) { f.effects["T9"] = 1 }, 0, 0, 1},
		"one is left":          {func(f *findings) { f.left = []string{"T1"} }, 0, 0, 1},
		"one is dead":          {func(f *findings) { f.dead = []string{"T1"} }, 0, 0, 1},
		"a producer knows of one that was not sent": {func(f *findings) { f.noted = f.noted[1:] }, 0, 0, 1},
		"one was sent that nobody knows of":         {func(f *findings) { f.noted = append(f.noted, "T7") }, 0, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := good()
			c.change(&f)
			v := judge(f)
			require.Equal(t, c.lost, v.lost)
			require.Equal(t, c.twice, v.twice)
			require.Len(t, v.wrong, c.wrong)
			require.Equal(t, c.lost+c.twice+c.wrong == 0, v.good())
		})
	}
}

// A run that is long enough and lacks something has proved nothing, and a handler is not blamed for others' failures.
func TestJudgeRun(t *testing.T) {
	t.Parallel()
	full := func() *chaos {
		c := &chaos{}
		c.kills.Store(1)
		c.inCommit.Store(1)
		c.freezes.Store(1)
		c.pauses.Store(1)
		return c
	}
	met := figures{Aborts: 1, Unknown: 1}
	var v verdict
	v.judgeRun(enough, allowedBacklog, full(), &faults{}, met)
	require.Empty(t, v.wrong)
	v.judgeRun(enough, allowedBacklog, &chaos{}, &faults{}, figures{})
	require.Len(t, v.wrong, 6)
	v = verdict{}
	v.judgeRun(enough-1, 0, &chaos{}, inject(new(fault.Set), setting{Queue: tableQueue}, 1), figures{})
	require.Empty(t, v.wrong, "a short run need not have it all")
	f := inject(new(fault.Set), setting{Queue: nativeQueue}, 1)
	v.judgeRun(enough, allowedBacklog, full(), f, met)
	require.Len(t, v.wrong, len(f.all))
	v = verdict{}
	v.judgeRun(time.Second, allowedBacklog+1, full(), &faults{}, figures{})
	require.Len(t, v.wrong, 1)
	v = verdict{}
	v.judgeRun(time.Second, 0, full(), &faults{}, figures{OwnFailures: 1, Outcomes: map[string]int64{"retried": 2}})
	require.Len(t, v.wrong, 1)
}

func TestRoomStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		ctx, cancel := context.WithCancel(t.Context())
		taken := make(chan bool)
		take := func(n int) { go func() { taken <- r.take(ctx, n) }() }
		take(8)
		synctest.Wait()
		select {
		case <-taken:
			t.Fatal("nothing may be sent before the first look")
		default:
		}
		r.look()(0)
		require.True(t, <-taken)
		seen := r.look() // the 8 may land behind this look's back
		r.sent(8)
		seen(0)
		take(3)
		synctest.Wait()
		select {
		case <-taken:
			t.Fatal("8 were not seen, and may be there")
		default:
		}
		r.look()(7)
		require.True(t, <-taken)
		take(1)
		cancel()
		require.False(t, <-taken)
	})
}

// What a worker tells is what its parent hears.
func TestEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &teller{out: &out}
	w.tell(eventReady, "")
	w.tell(eventEnter, "T1")
	w.tell(eventEnter, "T1")
	w.tell(eventEnter, "T2")
	w.tell(eventCommit, "")
	w.figures(figures{Received: 3, Outcomes: map[string]int64{"done": 2}})
	w.tell(eventCame, "T3")
	w.tell(eventDeferred, "T2")
	w.tell(eventLeave, "T1")
	w.tell(eventLeave, "T2")
	w.tell(eventFailed, "two\nlines")

	var came []string
	p := newProcess("w1", func(worker, id string) { came = append(came, worker+" "+id) })
	for line := range bytes.Lines(out.Bytes()) {
		p.hear(parseEvent(string(line)))
	}
	<-p.ready
	heard := p.told()
	require.Equal(t, 1, heard.handling, "T1 was entered twice and left once")
	require.Equal(t, 1, heard.commits)
	require.True(t, heard.busy())
	require.ElementsMatch(t, []string{"T1", "T1", "T2"}, heard.inHand)
	require.Equal(t, map[string]bool{"T2": true}, heard.deferred)
	require.Equal(t, []string{"w1 T3"}, came)
	require.EqualValues(t, 3, heard.figures.Received)
	require.EqualValues(t, 2, heard.figures.Outcomes["done"])
	require.Equal(t, "two lines", p.failed)

	p.hear(parseEvent(eventAnswered))
	p.hear(parseEvent("leave T1"))
	p.hear(parseEvent(`figures {"Received": 9`)) // cut short by a kill
	require.False(t, p.told().busy())
	require.EqualValues(t, 3, p.told().figures.Received)
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var kept tail
	for range 3 {
		_, err := kept.Write(bytes.Repeat([]byte("a"), keptTail/2))
		require.NoError(t, err)
	}
	_, err := kept.Write([]byte("the end"))
	require.NoError(t, err)
	require.Len(t, kept.String(), keptTail)
	require.Equal(t, "a"+"the end", kept.String()[keptTail-8:])
}
