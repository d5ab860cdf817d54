package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/processor"
)

// workerRole is the first argument of a worker process.
const workerRole = "worker"

// job is what a worker process is told, as JSON in its second argument.
type job struct {
	setting
	Addr     string // of the front, or of the bare emulator
	Database string
	Name     string
	Seed     uint64
}

// stopLine on its standard input tells a worker to finish. The end of its standard input means that its parent is gone.
const stopLine = "stop"

// tellEvery is how often a worker tells its figures. What it has counted since is lost when it is killed.
const tellEvery = 50 * time.Millisecond

// runner takes messages from one queue until ctx ends. *processor.Processor is one.
type runner interface {
	Run(ctx context.Context) error
	Figures() processor.Figures
}

// worker is a worker process from the inside.
type worker struct {
	job
	*teller
	wire        *wire
	client      *spanner.Client
	log         *slog.Logger
	ownFailures atomic.Int64

	mu   sync.Mutex
	dice *rand.Rand
}

// runners makes what runs in a worker process.
type runners func(*worker) ([]runner, error)

// beWorker is a worker process: it takes messages until it is told to stop, and returns the exit code.
func beWorker(args []string, in io.Reader, out, errOut io.Writer, make runners) int {
	w := &worker{
		teller: &teller{out: out},
		log:    slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if err := w.work(args, in, make); err != nil {
		w.tell(eventFailed, err.Error())
		return exitBad
	}
	return exitGood
}

func (w *worker) work(args []string, in io.Reader, runners runners) error {
	if len(args) != 1 {
		return fmt.Errorf("a worker wants one argument, its job, and has %d", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &w.job); err != nil {
		return fmt.Errorf("the worker's job: %w", err)
	}
	w.dice = rand.New(rand.NewPCG(w.Seed, 1))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go obey(in, stop)

	var err error
	if w.client, err = newClient(ctx, w.Database, w.clientOptions()...); err != nil {
		return err
	}
	defer w.client.Close()
	all, err := runners(w)
	if err != nil {
		return err
	}
	ended := make(chan error, len(all))
	for _, r := range all {
		go func() { ended <- r.Run(ctx) }()
	}
	w.tell(eventReady, "")
	return w.watch(ctx, all, ended)
}

func (w *worker) clientOptions() []option.ClientOption {
	w.wire = newWire(w.teller)
	var dial []grpc.DialOption
	if w.bare() { // first, so that a Commit that waits for its turn does not count as under way
		dial = newAlone().options()
	}
	opts := emulator.ClientOptions(w.Addr)
	for _, o := range append(dial, w.wire.options()...) {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	return opts
}

// obey waits for the word to stop. It ends the process when its parent is gone, whatever it is at.
func obey(in io.Reader, stop context.CancelFunc) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == stopLine {
			stop()
		}
	}
	os.Exit(exitBad)
}

// watch tells the figures until all have ended.
func (w *worker) watch(ctx context.Context, all []runner, ended <-chan error) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var errs []error
	var told figures
	for running := len(all); running > 0; {
		select {
		case err := <-ended:
			running--
			if err == nil && ctx.Err() == nil {
				err = errors.New("it has ended by itself")
			}
			errs = append(errs, err)
		case <-tick.C:
		}
		if now := w.figures(all); !reflect.DeepEqual(now, told) || running == 0 {
			w.teller.figures(now)
			told = now
		}
	}
	return errors.Join(errs...)
}

// figures adds up what the runners have met with.
func (w *worker) figures(all []runner) figures {
	sum := figures{Outcomes: make(map[string]int64), OwnFailures: w.ownFailures.Load(), RPCs: w.wire.rpcs()}
	for _, r := range all {
		f := r.Figures()
		sum.Received += f.Receiver.Received + f.Receiver.Again
		sum.Aborts += f.Aborts
		sum.Unknown += f.UnknownCommits
		for outcome, n := range f.Deliveries {
			sum.Outcomes[outcome.String()] += n
		}
	}
	return sum
}

// chance is true in the given share of the cases.
func (w *worker) chance(share float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.Float64() < share
}

// upTo draws a time.
func (w *worker) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.dice.Int64N(int64(d)))
}
