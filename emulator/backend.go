package emulator

import (
	"context"
	"fmt"
	"log/slog"
	"net"
)

// backend is what the search ended at, once it answers.
type backend struct {
	addr    string
	process *process // nil for one that ran already
	front   string   // the version of the front that answers there; empty: a bare emulator
}

func openBackend(ctx context.Context, f found, o Options) (backend, error) {
	switch {
	case f.running != "":
		return joinRunning(ctx, f.running, o)
	case f.docker != "":
		name := containerName()
		return startBackend(ctx, dockerCommand(f.docker, name, o.Args), o.Logger,
			func(ctx context.Context, _ string) (string, error) { return dockerAddress(ctx, f.docker, name) })
	default:
		args := append([]string{f.binary, "--host_port", "localhost:0"}, o.Args...)
		return startBackend(ctx, command{script: lifeline, args: args}, o.Logger,
			func(_ context.Context, printed string) (string, error) { return printed, nil })
	}
}

// joinRunning finds out what SPANNER_EMULATOR_HOST names.
func joinRunning(ctx context.Context, addr string, o Options) (backend, error) {
	if len(o.Args) > 0 {
		return backend{}, fmt.Errorf("emulator: Options.Args are for an emulator to be started, but SPANNER_EMULATOR_HOST names one that runs, at %s: unset it, or set Options.IgnoreEnvironment", addr)
	}
	version, err := probeAddr(ctx, addr)
	if err != nil {
		return backend{}, fmt.Errorf("emulator: nothing that is an emulator answers at %s, which SPANNER_EMULATOR_HOST names: %w; start it there, or unset the variable to have one started", addr, err)
	}
	return backend{addr: addr, front: version}, nil
}

// startBackend runs c until it answers. locate turns the address that the child prints into the one to dial.
func startBackend(ctx context.Context, c command, log *slog.Logger, locate func(context.Context, string) (string, error)) (backend, error) {
	p, err := startProcess(c, log)
	if err != nil {
		return backend{}, err
	}
	answering := false
	defer func() { // also after a panic that the caller survives
		if !answering {
			_ = p.stop()
		}
	}()

	var printed string
	select {
	case printed = <-p.output.address:
	case <-p.done:
		return backend{}, p.failure()
	case <-ctx.Done():
		return backend{}, fmt.Errorf("emulator: it did not print its address: %w; %s", context.Cause(ctx), p.output.tail())
	}
	addr, err := locate(ctx, printed)
	if err != nil {
		return backend{}, err
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return backend{}, fmt.Errorf("emulator: it says that it listens at %q, which is not host:port: %w", addr, err)
	}
	if err := awaitAnswer(ctx, addr, p.done); err != nil {
		select {
		case <-p.done:
			return backend{}, p.failure()
		default:
		}
		return backend{}, fmt.Errorf("emulator: it does not answer at %s: %w; %s", addr, err, p.output.tail())
	}
	answering = true
	return backend{addr: addr, process: p}, nil
}
