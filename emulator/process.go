package emulator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A lifeline is a pipe whose writing end only this process holds, as descriptor 3 of the child. The shell leaves a
// reader on it and becomes the emulator, whose process id is therefore the child's own. The end of the pipe means that
// this process is gone, however it went, and the reader kills the emulator; a line means that the emulator was reaped
// already and its process id may be somebody else's by now.
const lifeline = `{ read -r _ <&3 || kill -9 $$; } >/dev/null 2>&1 &
exec "$@" 3<&-`

// command is a program to run under a lifeline.
type command struct {
	script string
	args   []string

	// cleanup ends what killing the child leaves behind: a container lives in its engine. Nil: nothing to do.
	cleanup func(context.Context) error
}

// process is a started child. One goroutine forks it and waits for it.
type process struct {
	command command
	cmd     *exec.Cmd
	output  *output
	pipe    *os.File      // this process's end of the lifeline; owned by run
	done    chan struct{} // closed by run once the child is reaped and its output is read
	err     error         // how it ended; read after done
	left    error         // why the cleanup failed; read after done
}

func startProcess(c command, log *slog.Logger) (*process, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("emulator: the emulator runs under a shell that ends it with its parent: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("emulator: make a pipe to the emulator: %w", err)
	}
	defer read.Close()

	p := &process{command: c, output: newOutput(log), pipe: write, done: make(chan struct{})}
	p.cmd = exec.Command(shell, append([]string{"-c", c.script, "sh"}, c.args...)...)
	p.cmd.Stdout = p.output
	p.cmd.Stderr = p.output
	p.cmd.ExtraFiles = []*os.File{read}
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = 5 * time.Second // for output that somebody else keeps open

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		write.Close()
		return nil, fmt.Errorf("emulator: start %s: %w", c.args[0], err)
	}
	return p, nil
}

// run forks the child and waits for it on one thread: where there is a parent-death signal, it is sent when the thread
// that forked ends, not the process.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(p.done)
	p.err = p.cmd.Wait()
	if p.command.cleanup != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		p.left = p.command.cleanup(ctx)
	}
	last := "reaped\n"
	if p.left != nil {
		last = "clean\n" // the reader of the lifeline tries again
	}
	_, _ = p.pipe.WriteString(last) // fails only when somebody ended the reader
	p.pipe.Close()
}

// stop ends the child and returns once it is reaped. It may be called at any time, and again.
func (p *process) stop() error {
	_ = p.cmd.Process.Kill() // fails only when the child has ended already
	<-p.done
	return p.left
}

// failure tells how the child ended. Call it after done.
func (p *process) failure() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error() // "exit status 1", "signal: killed"
	}
	return fmt.Errorf("emulator: emulator_main ended: %s; %s", how, p.output.tail())
}
