package fxmodule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"

	"github.com/norn-go/norn/schema"
)

// node owns the parts of norn that run in an application.
type node struct {
	lifecycle fx.Lifecycle
	log       *slog.Logger
	database  *schema.DB // nil until it is open

	mu       sync.Mutex
	parts    []*runningPart // in the order they started
	stopping bool
}

// part is something that is started and stopped.
type part struct {
	name  string
	share int // of the time to stop, against those of the parts that stop later
	start func(context.Context) error
	stop  func() error // blocks until it has ended
}

type runningPart struct {
	part
	told atomic.Bool // to stop
	done chan struct{}
	err  error
}

// newNode is made before all else of norn's, so that its first part, the database, is closed last, and also when a
// neighbour fails between its opening and the start of the tables.
func newNode(lifecycle fx.Lifecycle, l logging) *node {
	n := &node{lifecycle: lifecycle, log: l.logger()}
	n.add(part{name: "database", share: 2, start: n.watch, stop: n.closeDatabase})
	return n
}

func (n *node) closeDatabase() error {
	if n.database == nil {
		return nil
	}
	return n.database.Close()
}

// add lets fx start p after the parts added before, and stop it before them.
func (n *node) add(p part) {
	running := &runningPart{part: p, done: make(chan struct{})}
	begun := false
	n.lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if begun {
				return errors.New("fxmodule: the application was started before: make a new one")
			}
			begun = true
			n.mu.Lock()
			n.parts = append(n.parts, running)
			n.mu.Unlock()
			return p.start(ctx)
		},
		OnStop: func(ctx context.Context) error {
			n.follow(ctx)
			return n.stop(ctx, running)
		},
	})
}

// watch stops everything if fx gives up the start.
func (n *node) watch(ctx context.Context) error {
	context.AfterFunc(ctx, func() {
		if !n.isStopping() && !started(n.lifecycle) && !n.isStopping() {
			n.log.Error("fxmodule: the application did not start in time")
			n.abandon()
		}
	})
	return nil
}

// follow stops what fx leaves running if the stop runs out of time.
func (n *node) follow(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.stopping {
		n.stopping = true
		context.AfterFunc(ctx, n.abandon)
	}
}

func (n *node) isStopping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// abandon stops the parts that nobody told to stop: fx calls no stop hook once its context has ended.
func (n *node) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), fx.DefaultTimeout)
	defer cancel()
	n.mu.Lock()
	parts := slices.Clone(n.parts)
	n.mu.Unlock()
	for _, p := range slices.Backward(parts) {
		if p.told.Load() {
			continue
		}
		if err := n.stop(ctx, p); err != nil {
			n.log.Error("fxmodule: stop", "err", err)
		}
	}
}

// stop ends p, once, and waits for its share of the time that is left. A part that needs longer is left behind: what
// stops after it must have its time too.
func (n *node) stop(ctx context.Context, p *runningPart) error {
	if p.told.CompareAndSwap(false, true) {
		go func() {
			p.err = p.part.stop()
			close(p.done)
		}()
	}
	limit := time.NewTimer(n.limit(ctx, p))
	defer limit.Stop()
	select {
	case <-p.done:
		return p.err
	case <-limit.C:
		return fmt.Errorf("fxmodule: the %s did not stop in its time and was left behind", p.name)
	}
}

// limit is p's share of the time until ctx ends, of which a little is kept for fx.
func (n *node) limit(ctx context.Context, p *runningPart) time.Duration {
	left := fx.DefaultTimeout
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	shares := 1
	for _, other := range n.parts {
		shares += other.share
		if other == p {
			break
		}
	}
	return left * time.Duration(p.share) / time.Duration(shares)
}
