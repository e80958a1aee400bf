package fxmodule

import (
	"cmp"
	"errors"
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
	if c.err != nil {
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

func provideEngine(c *core) (*saga.Engine, error) { return c.engine, c.err }
