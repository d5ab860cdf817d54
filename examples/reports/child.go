package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// child is a worker process.
type child struct {
	cmd *exec.Cmd
	in  io.Closer // the child ends when it is closed, by us or by our end
	out *bufio.Reader
}

// start starts this program as a worker. It is killed when ctx ends.
func (t *teller) start(ctx context.Context) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-worker", t.e.Addr(), "-database", t.worker.database,
		"-lease", t.lease.String(), "-part", t.part.String(), "-parts", fmt.Sprint(t.parts))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// next waits until the worker has made a part, and says which.
func (c *child) next() (part int, err error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the worker has ended before its work was done: %w", err)
	}
	if _, err := fmt.Sscanf(line, "made part %d", &part); err != nil {
		return 0, fmt.Errorf("the worker said %q", strings.TrimSpace(line))
	}
	return part, nil
}

// kill ends the worker with SIGKILL, if it has not ended.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.in.Close()
	_ = c.cmd.Wait() // it was killed, and says so
}
