package processor

import "context"

// Shutdown stops the processor as the end of Run's context does, and waits until Run has returned; it returns what Run
// returned. When ctx ends first, draining is over: handlers' contexts end at once, and Shutdown still waits for Run, which
// then returns within two seconds, or three when a logger or an exporter blocks, and returns ctx's error. It may be called
// several times and from several goroutines. Before Run it returns nil, and a later Run returns ErrStopped.
func (p *Processor) Shutdown(ctx context.Context) error {
	p.stopOnce.Do(func() { close(p.stopping) })
	if p.state.CompareAndSwap(stateNew, stateStopped) {
		return nil
	}
	if p.state.Load() == stateStopped {
		return nil
	}
	select {
	case <-p.ended:
		return p.endedError
	case <-ctx.Done():
	}
	p.hurryOnce.Do(func() { close(p.hurry) })
	<-p.ended
	return ctx.Err()
}
