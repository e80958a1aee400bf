package fxmodule

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/fx"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// core is the engine with what it shares with poller and relay, or why there is none.
type core struct {
	engine *saga.Engine
	due    *deadline.Signal
	sent   *outbox.Signal
	err    error
}

type coreIn struct {
	fx.In
	Checked      *checked
	Node         *node
	Injected     []injected `group:"norn.injected"` // before the database, so that none is open when a service fails
	DB           *database
	Interceptors []interceptor `group:"norn.interceptors"`
}

func newCore(in coreIn) *core {
	if in.DB.err != nil {
		return &core{err: in.DB.err}
	}
	slices.SortFunc(in.Interceptors, func(a, b interceptor) int { return cmp.Compare(a.order, b.order) })
	var interceptors []saga.Interceptor
	for _, i := range in.Interceptors {
		interceptors = append(interceptors, i.fn)
	}
	c := &core{due: deadline.NewSignal(), sent: outbox.NewSignal()}
	cfg := in.Checked.config
	c.engine, c.err = saga.New(in.DB.DB, saga.Config{
		Workers:           cfg.Workers,
		Names:             in.Checked.namings,
		Service:           lookup(in.Injected),
		Interceptors:      interceptors,
		Signal:            c.due,
		Outbox:            c.sent,
		Clock:             in.DB.clock,
		MeasureEvery:      cfg.Deadline.LeaseTTL / 3,
		EventRetention:    cfg.Event.Retention,
		InstanceRetention: cfg.Instance.Retention,
		ValueLimit:        cfg.Limits.Value,
		PayloadLimit:      cfg.Limits.Payload,
		Listen:            cfg.Wake.Listen,
		Logger:            in.Node.log,
	}, in.Checked.definitions...)
	if c.err = errors.Join(c.err, sameServices(in.Injected)); c.err != nil {
		c.err = errors.Join(c.err, in.DB.Close())
		return c
	}
	engine := background("engine", 3, c.engine.Run)
	housekeeping := engine.stop
	engine.stop = func() error {
		err := housekeeping()
		c.engine.Close()
		return err
	}
	in.Node.add(engine)
	return c
}

func lookup(all []injected) func(reflect.Type) (any, bool) {
	return func(t reflect.Type) (any, bool) {
		for _, i := range all {
			if v, ok := i.services[t]; ok {
				return v.Interface(), true
			}
		}
		return nil, false
	}
}

// sameServices refuses two values for one type, which two modules may have provided as private: an engine keeps one.
func sameServices(all []injected) error {
	slices.SortFunc(all, func(a, b injected) int { return cmp.Compare(a.name, b.name) })
	first := map[reflect.Type]injected{}
	var errs []error
	for _, i := range all {
		for t, v := range i.services {
			other, seen := first[t]
			if !seen {
				first[t] = i
				continue
			}
			if v.Comparable() && !v.Equal(other.services[t]) {
				errs = append(errs, fmt.Errorf("fxmodule: %s and %s get different values of %v: give them types of their own",
					other.name, i.name, t))
			}
		}
	}
	return errors.Join(errs...)
}

func provideEngine(c *core) (*saga.Engine, error) { return c.engine, c.err }
