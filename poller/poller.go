package poller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
)

// Dispatcher runs what a deadline is for.
type Dispatcher interface {
	// Dispatch claims d and runs its handler, and returns when that has ended. It is called on a
	// goroutine per deadline; those of one saga come one after the other, in due order.
	//
	// nil: d was handled, or was no longer there. An error marked by retry.Uncounted leaves d as it is, for
	// the next pass; one marked by retry.Permanent parks it at once; every other error, and a panic, counts
	// as a failed attempt. ctx ends when the poller has been stopping for longer than its DrainTimeout, not
	// with the lease.
	Dispatch(ctx context.Context, d deadline.Due) error
	// Kinds are the deadlines that Dispatch knows. Others are left for another node.
	Kinds() []deadline.Kind
}

// Poller sweeps due deadlines. It is safe for concurrent use.
type Poller struct {
	store      *deadline.Store
	locker     *lease.Locker
	dispatcher Dispatcher
	cfg        Config
	log        *slog.Logger
	passing    chan struct{} // one: passes follow each other
	flight     *flight
	stats      statistics
	rest       rest
	foreign    foreign

	mu      sync.Mutex
	leading context.Context // the lease's, while Run has it
}

// New makes a poller of deadlines in store that sweeps while locker holds its lease. All mistakes of cfg
// are reported together.
func New(store *deadline.Store, locker *lease.Locker, d Dispatcher, cfg Config) (*Poller, error) {
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("poller: a deadline store is missing"))
	}
	if locker == nil {
		errs = append(errs, errors.New("poller: a locker is missing"))
	}
	if d == nil {
		errs = append(errs, errors.New("poller: a dispatcher is missing"))
	}
	cfg = cfg.withDefaults()
	if err := errors.Join(append(errs, cfg.check(locker)...)...); err != nil {
		return nil, err
	}
	return &Poller{
		store: store, locker: locker, dispatcher: d, cfg: cfg, log: cfg.Logger,
		passing: make(chan struct{}, 1), flight: newFlight(),
	}, nil
}

// Run sweeps at once whenever it takes the lease, then when the next deadline or attempt is due, when the
// Signal says so, and at least every Interval. Errors and panics are logged once per change and survived.
//
// It blocks until ctx ends, then starts nothing new, waits for what it dispatched (whose contexts end after
// DrainTimeout), gives the lease back and returns nil. It may be called again.
func (p *Poller) Run(ctx context.Context) error {
	work, stop := p.workContext(ctx)
	defer stop()
	defer p.flight.drained()
	return p.locker.Run(ctx, p.cfg.Interval, func(lead context.Context) error {
		defer p.lead(lead)()
		if p.loop(lead, work); errors.Is(context.Cause(lead), lease.ErrLost) {
			return context.Cause(lead)
		}
		p.flight.drained()
		return nil
	})
}

// Sweep makes one pass under the lease, by hand, and returns when all that it dispatched has ended. While
// Run holds the lease, it sweeps under that; if another holds it, that is lease.ErrHeld. What a handler
// returns is no error of the sweep; a lease lost on the way is one that wraps lease.ErrLost.
func (p *Poller) Sweep(ctx context.Context) error {
	if lead := p.lease(); lead != nil {
		return p.sweepUnder(ctx, lead)
	}
	err := p.locker.Hold(ctx, func(lead context.Context) error { return p.sweep(lead, ctx) })
	if errors.Is(err, lease.ErrHeld) {
		if lead := p.lease(); lead != nil { // Run took it meanwhile
			return p.sweepUnder(ctx, lead)
		}
	}
	return err
}

func (p *Poller) sweepUnder(ctx, lead context.Context) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lead, func() { cancel(context.Cause(lead)) })()
	return p.sweep(both, ctx)
}

func (p *Poller) sweep(lead, caller context.Context) error {
	work, stop := p.workContext(caller)
	defer stop()
	var dispatched sync.WaitGroup
	defer dispatched.Wait()
	return p.pass(lead, work, &dispatched)
}

// workContext is the context of dispatched work: it outlives ctx by DrainTimeout.
func (p *Poller) workContext(ctx context.Context) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	drained := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(p.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-drained:
		case <-timer.C:
			cancel(errDrainTimeout)
		}
	})
	return work, func() {
		close(drained)
		unwatch()
		cancel(nil)
	}
}

var errDrainTimeout = errors.New("poller: stopping: the drain timeout has passed")

// lead lets hand-made sweeps share Run's lease until the function returned is called.
func (p *Poller) lead(ctx context.Context) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leading = ctx
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leading = nil
	}
}

func (p *Poller) lease() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading
}
