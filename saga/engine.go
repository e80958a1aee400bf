package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga/internal/keyed"
	"github.com/norn-go/norn/schema"
)

// Engine runs the sagas of its definitions on one database. It is safe for concurrent use, and any number
// of processes may run engines on the same database.
type Engine struct {
	db        *schema.DB
	cfg       Config
	types     *Types
	byType    map[string]*Definition // by name and alias
	routes    map[reflect.Type][]*route
	services  map[reflect.Type]reflect.Value
	workers   *keyed.Pool[Key]
	store     *store
	deadlines *deadline.Store
	commands  *outbox.Store
	others    chan struct{} // wakes the goroutine that wakes other processes
	counts    counts
	skewed    atomic.Bool
}

// New makes an engine. All mistakes are reported together: names that two definitions claim, services
// that nothing provides, settings out of range. The tables must exist (schema.Migrate); they are not
// touched here.
func New(db *schema.DB, cfg Config, defs ...*Definition) (*Engine, error) {
	cfg = cfg.withDefaults(db)
	e := &Engine{
		db: db, cfg: cfg,
		byType:    map[string]*Definition{},
		routes:    map[reflect.Type][]*route{},
		services:  map[reflect.Type]reflect.Value{},
		store:     &store{db},
		deadlines: deadline.NewStore(db),
		commands:  outbox.NewStore(db),
		others:    make(chan struct{}, 1), // one: a wake-up waiting says it all
	}
	errs := []error{cfg.validate()}
	namings := cfg.Names
	for _, d := range defs {
		errs = append(errs, e.add(d)...)
		namings = append(namings[:len(namings):len(namings)], d.namings...)
	}
	types, err := NewTypes(cfg.Codec, namings...)
	e.types = types
	errs = append(errs, err, e.nameMessages(defs))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, d := range defs {
		e.warn(d)
	}
	e.workers = keyed.New[Key](cfg.Workers)
	return e, nil
}

func (e *Engine) add(d *Definition) (errs []error) {
	for _, name := range d.Names() {
		if other := e.byType[name]; other != nil {
			errs = append(errs, fmt.Errorf("saga: %s: the name %q is taken by the saga type of %v: %s", d.name, name, other.state, instead(d, other)))
			continue
		}
		e.byType[name] = d
	}
	for _, r := range d.order {
		e.routes[r.event] = append(e.routes[r.event], r)
	}
	for h := range d.handlers() {
		for _, t := range h.services {
			errs = append(errs, e.resolve(d, h, t))
		}
	}
	return errs
}

func instead(d, other *Definition) string {
	if d.state == other.state {
		return "is it registered twice?"
	}
	return fmt.Sprintf("that of %v needs another", d.state)
}

func (e *Engine) resolve(d *Definition, h *handler, t reflect.Type) error {
	if _, done := e.services[t]; done {
		return nil
	}
	v, ok := e.cfg.Service(t)
	if !ok || v == nil {
		return fmt.Errorf("saga: %s: %s %s wants a %v and nothing provides one: "+
			"add it with fx.Provide or fx.Supply; without fx give it to saga.Config.Service", d.name, h.kind, h.label, t)
	}
	e.services[t] = reflect.ValueOf(v)
	return nil
}

// warn tells what is allowed and most likely not meant.
func (e *Engine) warn(d *Definition) {
	tell := func(format string, args ...any) {
		e.cfg.Logger.Warn("saga: this may be a mistake", "saga", d.name, "warning", fmt.Sprintf(format, args...))
	}
	if !slices.ContainsFunc(d.order, func(r *route) bool { return r.start != nil }) {
		tell("no saga.Start: a saga of this type can never begin")
	}
	for h := range d.handlers() {
		for _, doubt := range h.doubts {
			tell("%s %s: %s", h.kind, h.label, doubt)
		}
	}
}

// nameMessages finds two types of one name among the payloads that definitions declare.
func (e *Engine) nameMessages(defs []*Definition) error {
	var errs []error
	for _, d := range defs {
		for h := range d.handlers() {
			if h.message != nil {
				_, err := e.types.Names(h.message)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Types are the engine's stored types, for outbox.NewRouter.
func (e *Engine) Types() *Types { return e.types }

// Now is the framework clock of this node.
func (e *Engine) Now() time.Time { return e.cfg.Now() }

// Close takes no more work and waits for what runs; what comes later is [ErrClosed]. The database stays open, and
// [Engine.HandleTx], which works on its caller's goroutine, goes on.
func (e *Engine) Close() { e.workers.Close() }

// onWorkers runs fn after all that was begun for key before.
func (e *Engine) onWorkers(ctx context.Context, key Key, fn func() error) error {
	err := e.workers.Do(ctx, key, fn)
	if errors.Is(err, keyed.ErrClosed) {
		return ErrClosed
	}
	return err
}

// Stats counts what happened in this process since the engine was made.
type Stats struct {
	Handled    int64 // invocations that committed: events and deadlines
	Ignored    int64 // events that met no live saga to handle them
	Duplicates int64 // events that a saga had seen before
	Stale      int64 // due deadlines that were cancelled, replaced or fired before their claim
	Orphaned   int64 // due deadlines removed because their saga is missing or has ended
	Conflicts  int64 // attempts that lost against another transaction and were run again
}

type counts struct{ handled, ignored, duplicates, stale, orphaned, conflicts atomic.Int64 }

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	return Stats{
		e.counts.handled.Load(), e.counts.ignored.Load(), e.counts.duplicates.Load(),
		e.counts.stale.Load(), e.counts.orphaned.Load(), e.counts.conflicts.Load(),
	}
}

// Wake lets poller and relay look at the tables: for a caller of [Engine.HandleTx] after its commit.
func (e *Engine) Wake() {
	e.cfg.Signal.Notify(time.Time{})
	e.cfg.Outbox.Notify()
	e.wakeOthers()
}

func (e *Engine) wakeOthers() {
	select {
	case e.others <- struct{}{}:
	default:
	}
}

type insideKey struct{ db *schema.DB }

// inside marks ctx as that of a running handler.
func (e *Engine) inside(ctx context.Context) context.Context {
	return context.WithValue(ctx, insideKey{e.db}, true)
}

func (e *Engine) refuseNested(ctx context.Context) error {
	if ctx.Value(insideKey{e.db}) != nil {
		return ErrNested
	}
	return nil
}
