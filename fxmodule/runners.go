package fxmodule

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
)

// runners are what works in the background while it holds a lease.
type runners struct {
	relay  *outbox.Relay
	poller *poller.Poller
	err    error // why there are none
}

type runnersIn struct {
	fx.In
	Checked      *checked
	Node         *node
	Commands     []bound              `group:"norn.bound"` // before the database, as in coreIn
	Interceptors []commandInterceptor `group:"norn.commandInterceptors"`
	Sinks        []sink               `group:"norn.sinks"`
	Core         *core
	DB           *database
}

// How long running work keeps its context after the stop has begun, at fx's own stop timeout of 15 seconds.
const (
	relayDrain  = 3 * time.Second
	pollerDrain = 5 * time.Second
)

func newRunners(in runnersIn) *runners {
	if in.DB.err != nil {
		return &runners{err: in.DB.err}
	}
	slices.SortFunc(in.Commands, func(a, b bound) int { return cmp.Compare(a.order, b.order) })
	slices.SortFunc(in.Interceptors, func(a, b commandInterceptor) int { return cmp.Compare(a.order, b.order) })
	errs := []error{in.Core.err}
	for _, b := range in.Commands {
		errs = append(errs, b.missing()...)
	}
	if len(in.Sinks) > 1 {
		errs = append(errs, fmt.Errorf("fxmodule: Sink is given %d times: want one", len(in.Sinks)))
	}
	if err := errors.Join(errs...); err != nil {
		return &runners{err: errors.Join(err, in.DB.Close())}
	}
	relay, relayErr := in.newRelay()
	poller, pollerErr := in.newPoller()
	if err := errors.Join(relayErr, pollerErr); err != nil {
		return &runners{err: errors.Join(err, in.DB.Close())}
	}
	cfg := in.Checked.config
	if cfg.Outbox.Relay.Enabled {
		in.addRelay(relay)
	}
	if cfg.Deadline.Enabled && cfg.Deadline.Polling.Enabled && len(in.Core.engine.Kinds()) > 0 {
		in.Node.add(background("poller", 6, poller.Run))
	}
	return &runners{relay: relay, poller: poller}
}

// addRelay lets the relay run where it could deliver anything. Elsewhere it would keep the lease from one that can.
func (in runnersIn) addRelay(relay *outbox.Relay) {
	switch {
	case len(in.Checked.definitions) == 0:
	case len(in.Commands)+len(in.Sinks) == 0:
		in.Node.lifecycle.Append(fx.StartHook(func() {
			in.Node.log.Warn("fxmodule: no command handler and no sink: commands are stored and not delivered here; " +
				"add fxmodule.CommandHandler or fxmodule.Sink, or set saga.outbox.relay.enabled to false")
		}))
	default:
		in.Node.add(background("relay", 4, relay.Run))
	}
}

func (in runnersIn) newRelay() (*outbox.Relay, error) {
	var handlers []any
	for _, b := range in.Commands {
		handlers = append(handlers, b.plain(b.services))
	}
	router, err := outbox.NewRouter(in.Core.engine.Types(), handlers...)
	if err != nil {
		return nil, err
	}
	cfg := in.Checked.config
	relay := outbox.Config{
		Router:       router,
		SagaTypes:    in.Checked.sagaTypes(),
		Retry:        policy(cfg.Outbox.Retry),
		Interval:     cfg.Deadline.Polling.Interval,
		BatchSize:    cfg.Deadline.Polling.BatchSize,
		DrainTimeout: relayDrain,
		Now:          in.Core.engine.Now,
		Signal:       in.Core.sent,
		Logger:       in.Node.log,
	}
	for _, s := range in.Sinks {
		relay.Sink = s.Sink
	}
	for _, i := range in.Interceptors {
		relay.Interceptors = append(relay.Interceptors, i.fn)
	}
	return outbox.NewRelay(outbox.NewStore(in.DB.DB), in.locker("/relay"), relay)
}

func (in runnersIn) newPoller() (*poller.Poller, error) {
	cfg := in.Checked.config.Deadline
	return poller.New(deadline.NewStore(in.DB.DB), in.locker(""), in.Core.engine, poller.Config{
		Interval:     cfg.Polling.Interval,
		BatchSize:    cfg.Polling.BatchSize,
		Retry:        policy(cfg.Retry),
		DrainTimeout: pollerDrain,
		Now:          in.Core.engine.Now,
		Signal:       in.Core.due,
		Logger:       in.Node.log,
	})
}

func (in runnersIn) locker(suffix string) *lease.Locker {
	return lease.New(in.DB.DB, in.Checked.leaseName()+suffix, lease.Config{TTL: in.Checked.config.Deadline.LeaseTTL, Logger: in.Node.log})
}

func policy(r config.Retry) retry.Policy {
	return retry.Policy{MaxAttempts: r.MaxAttempts, Initial: r.InitialBackoff, Max: r.MaxBackoff, Jitter: r.Jitter}
}

// sagaTypes are all names under which this node knows saga types, sorted.
func (c *checked) sagaTypes() []string {
	names := []string{}
	for _, d := range c.definitions {
		names = append(names, d.Names()...)
	}
	slices.Sort(names)
	return names
}

// leaseName is the same on all nodes that know the same saga types.
func (c *checked) leaseName() string {
	if name := c.config.Deadline.LeaseName; name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(strings.Join(c.sagaTypes(), "\x00")))
	return fmt.Sprintf("sagas-%x", sum[:6])
}

func provideRelay(r *runners) (*outbox.Relay, error)   { return r.relay, r.err }
func providePoller(r *runners) (*poller.Poller, error) { return r.poller, r.err }
