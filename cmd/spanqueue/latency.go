package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front"
)

// latencyFlag reads --latency into what the front takes. It implements pflag.Value.
type latencyFlag struct{ to *front.Latency }

const latencyForms = "it is a time such as 5ms, or 5ms+2ms with a random part, or such times by class, read=1ms,statement=2ms,commit=8ms+2ms,begin=1ms"

func (latencyFlag) Type() string { return "times" }

func (f latencyFlag) String() string {
	if f.to == nil || *f.to == (front.Latency{}) {
		return ""
	}
	return fmt.Sprintf("%+v", *f.to)
}

// Set reads parts from left to right; one without a class is for all.
func (f latencyFlag) Set(text string) error {
	l := front.Latency{Seed: f.to.Seed}
	for part := range strings.SplitSeq(text, ",") {
		class, times, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			class, times = "", class
		}
		wait, err := readWait(times)
		if err != nil {
			return err
		}
		switch class {
		case "":
			seed := l.Seed
			l = front.EqualLatency(wait)
			l.Seed = seed
		case "read":
			l.Read = wait
		case "statement":
			l.Statement = wait
		case "commit":
			l.Commit = wait
		case "begin":
			l.Begin = wait
		default:
			return fmt.Errorf("%q is no class of requests; %s", class, latencyForms)
		}
	}
	*f.to = l
	return nil
}

func readWait(text string) (w front.Wait, err error) {
	fixed, random, both := strings.Cut(text, "+")
	if w.Fixed, err = time.ParseDuration(fixed); err == nil && both {
		w.Random, err = time.ParseDuration(random)
	}
	if err != nil || w.Fixed < 0 || w.Random < 0 {
		return w, fmt.Errorf("%q is no latency; %s", text, latencyForms)
	}
	return w, nil
}
