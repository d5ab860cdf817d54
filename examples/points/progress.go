package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows how far the work is: one line that is written over on a terminal, a line a second elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	last     time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) show(line string) {
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r\033[K%s", line)
	case time.Since(p.last) >= time.Second:
		fmt.Fprintln(p.out, line)
		p.last = time.Now()
	}
}

// note writes a line that stays.
func (p *progress) note(line string) {
	p.clear()
	fmt.Fprintln(p.out, line)
}

// clear leaves the output where the next line may be written.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
