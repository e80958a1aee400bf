package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
)

// Options say what to run, and where to tell about it.
type Options struct {
	Input       string        // a file of JSON lines
	Database    string        // sqlite://FILE or postgres://…
	Timeout     time.Duration // how long a transfer waits for each confirmation; 0: as configured, else 2s
	JSON        bool          // the summary as one JSON object
	SkipInvalid bool          // leave lines out that would be refused
	Verbose     bool          // log what norn does
	Out, Err    io.Writer     // the summary; everything else
}

var (
	// ErrRefused is an input with lines that are no transfers. Nothing was started.
	ErrRefused = errors.New("input refused")
	// ErrInterrupted is a run that was told to stop before all transfers had ended.
	ErrInterrupted = errors.New("interrupted")
	// ErrUnsound is a run after which money is missing, a transfer is open or a command undelivered.
	ErrUnsound = errors.New("not everything is as it should be")
)

const stopTimeout = 20 * time.Second

// Run runs all transfers of the input to their end and writes the summary. It ends early, with
// [ErrInterrupted], when ctx does; what had begun is then gone on with by the next Run.
func Run(ctx context.Context, o Options) (err error) {
	began := time.Now()
	orders, err := read(o)
	if err != nil {
		return err
	}
	app, err := start(ctx, o)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, app.stop(stop))
	}()
	if err := app.process(ctx, orders, newProgress(o.Err, len(orders))); err != nil {
		return interrupted(ctx, err)
	}
	summary, err := app.summarize(ctx, orders)
	if err != nil {
		return interrupted(ctx, err)
	}
	summary.DurationMs = time.Since(began).Milliseconds()
	if err := summary.write(o.Out, o.JSON); err != nil {
		return err
	}
	return summary.sound()
}

// interrupted tells a failure that follows from the end of ctx from others.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w before all transfers had ended: run it again with the same database and input to go on", ErrInterrupted)
	}
	return err
}

func read(o Options) ([]input.Order, error) {
	orders, refusals, err := input.ReadFile(o.Input)
	if err != nil {
		return nil, err
	}
	for _, r := range refusals {
		fmt.Fprintln(o.Err, r.Error())
	}
	switch {
	case len(refusals) == 0:
	case o.SkipInvalid:
		fmt.Fprintf(o.Err, "%s of %s left out\n", count(len(refusals), "line"), o.Input)
	default:
		return nil, fmt.Errorf("%w: %s of %s, nothing was started; mend them or leave them out with --skip-invalid",
			ErrRefused, count(len(refusals), "bad line"), o.Input)
	}
	if len(orders) == 0 {
		fmt.Fprintf(o.Err, "%s has no transfers\n", o.Input)
	}
	return orders, nil
}

// process starts the transfers and returns when all have ended, those of earlier inputs too.
func (a *app) process(ctx context.Context, orders []input.Order, p *progress) error {
	if err := bank.Accept(ctx, a.db, orders); err != nil {
		return err
	}
	defer p.close()
	p.begin()
	group, ctx := errgroup.WithContext(ctx)
	starts := newStarter(a)
	group.Go(func() error { return starts.run(ctx, orders) })
	group.Go(func() error { return a.watch(ctx, starts, len(orders), p.show) })
	return group.Wait()
}
