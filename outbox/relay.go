package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/retry"
)

// Relay delivers stored commands while it holds its lease. Make it with [NewRelay]; it is safe for
// concurrent use, but only one Run at a time.
type Relay struct {
	store  *Store
	locker *lease.Locker
	cfg    Config
	scope  scope
	chain  func(context.Context, Command) error

	flights  flights
	room     chan struct{} // a token for each worker
	passing  chan struct{} // one: passes do not overlap
	alarm    *alarm
	reads    atomic.Int64 // of due commands, so far
	left     atomic.Int64 // commands left as they were, since the last pause
	progress atomic.Int64 // commands delivered or recorded as failed
	looking  *retry.Trouble
	writing  *retry.Trouble
	failing  lately

	mu    sync.Mutex
	term  context.Context // of the lease that Run holds; nil: it holds none
	stats Stats
}

// NewRelay makes a relay that does nothing until [Relay.Run] or [Relay.Flush]. All mistakes of cfg are
// reported together.
func NewRelay(store *Store, locker *lease.Locker, cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	var errs []error
	if store == nil || locker == nil {
		errs = append(errs, errors.New("outbox: a relay needs a store and a locker"))
	}
	if err := errors.Join(append(errs, cfg.validate())...); err != nil {
		return nil, err
	}
	r := &Relay{
		store: store, locker: locker, cfg: cfg, scope: cfg.scope(), chain: chain(cfg),
		flights: flights{busy: map[saga]bool{}},
		room:    make(chan struct{}, cfg.Workers),
		passing: make(chan struct{}, 1),
		alarm:   newAlarm(),
		looking: retry.NewTrouble(cfg.Logger.With("what", "finding commands"), "outbox trouble"),
		writing: retry.NewTrouble(cfg.Logger.With("what", "recording deliveries"), "outbox trouble"),
		failing: lately{silence: cfg.Interval, told: map[string]time.Time{}},
	}
	return r, nil
}

// Run delivers commands until ctx ends. While another process holds the lease it waits for it; the
// lease lost, the database gone and any error or panic end nothing, and each trouble is logged once
// when it begins and once when it is over.
//
// When ctx ends, no delivery begins any more; those that run have the configured drain timeout before
// their own context ends too, and Run returns nil when all are back and recorded. Such an interruption
// costs no attempt. Run may be called again afterwards.
func (r *Relay) Run(ctx context.Context) error {
	c := newCrew(ctx)
	defer c.end(nil)
	err := r.locker.Run(ctx, r.cfg.Interval, func(term context.Context) error {
		defer r.enter(term)()
		r.lead(term, c)
		if errors.Is(context.Cause(term), lease.ErrLost) {
			return nil // the deliveries that run may end while the next term is waited for
		}
		c.wait(term, r.cfg.DrainTimeout)
		return nil
	})
	c.wait(ctx, r.cfg.DrainTimeout)
	return err
}

func (r *Relay) enter(term context.Context) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = term
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.term = nil
	}
}

// Flush delivers by hand all that is due, and what becomes due through that, and returns when what it
// began has ended. Commands that fail are recorded as ever and are no error of Flush. What a running
// [Relay.Run] is delivering at the moment is left to it.
//
// It works under the lease: under Run's if Run holds it, else under one that it takes and gives back;
// [lease.ErrHeld] if another has it.
func (r *Relay) Flush(ctx context.Context) error {
	r.mu.Lock()
	term := r.term
	r.mu.Unlock()
	if term == nil {
		return r.locker.Hold(ctx, r.flush)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(term, func() { cancel(context.Cause(term)) })()
	return r.flush(ctx)
}

func (r *Relay) flush(term context.Context) error {
	c := newCrew(term)
	defer c.end(nil)
	for {
		before := r.progress.Load()
		began, err := r.pass(term, c)
		c.wait(term, r.cfg.DrainTimeout)
		if err != nil {
			return err
		}
		if term.Err() != nil {
			return context.Cause(term)
		}
		if began == 0 || r.progress.Load() == before {
			return nil
		}
	}
}

// Stats is what a relay did since it was made.
type Stats struct {
	Delivered int64  // commands removed after their delivery
	Failed    int64  // attempts that counted
	Parked    int64  // commands given up, out of Failed's
	InFlight  int    // sagas with a delivery running
	Leading   bool   // whether Run holds the lease
	Foreign   []Kind // kinds of commands that are overdue and that this relay does not know, as of the last look
}

// Stats reads the counters.
func (r *Relay) Stats() Stats {
	inFlight := len(r.flights.list())
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.InFlight, s.Leading, s.Foreign = inFlight, r.term != nil && r.term.Err() == nil, slices.Clone(s.Foreign)
	return s
}

func (r *Relay) count(change func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.stats)
}

// chain is the interceptors around the router and the sink.
func chain(cfg Config) func(context.Context, Command) error {
	next := func(ctx context.Context, c Command) error {
		if cfg.Router != nil && cfg.Router.handles(c.Type) {
			return cfg.Router.Deliver(ctx, c)
		}
		if cfg.Sink == nil {
			return fmt.Errorf("outbox: no handler for command type %q", c.Type)
		}
		return cfg.Sink.Deliver(withDelivery(ctx, c), c)
	}
	for _, interceptor := range slices.Backward(cfg.Interceptors) {
		inner := next
		next = func(ctx context.Context, c Command) error { return interceptor(ctx, c, inner) }
	}
	return next
}
