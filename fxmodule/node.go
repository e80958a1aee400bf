package fxmodule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"
)

// node owns the parts of norn that run in an application.
type node struct {
	lifecycle fx.Lifecycle
	log       *slog.Logger

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
	once sync.Once
	done chan struct{}
	err  error
}

func newNode(lifecycle fx.Lifecycle, l logging) *node {
	return &node{lifecycle: lifecycle, log: l.logger()}
}

// add lets fx start p after the parts added before, and stop it before them.
func (n *node) add(p part) {
	var running *runningPart
	n.lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if running != nil {
				return errors.New("fxmodule: the application was started before: make a new one")
			}
			running = &runningPart{part: p, done: make(chan struct{})}
			n.mu.Lock()
			n.parts = append(n.parts, running)
			n.mu.Unlock()
			if err := p.start(ctx); err != nil {
				return errors.Join(err, n.stop(ctx, running))
			}
			n.watch(ctx)
			return nil
		},
		OnStop: func(ctx context.Context) error {
			n.mu.Lock()
			n.stopping = true
			n.mu.Unlock()
			context.AfterFunc(ctx, n.abandon)
			return n.stop(ctx, running)
		},
	})
}

// watch stops everything if fx gives up the start.
func (n *node) watch(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		if !n.stops() && !started(n.lifecycle) && !n.stops() {
			n.log.Error("fxmodule: the application did not start in time")
			n.abandon()
		}
	})
}

func (n *node) stops() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

// abandon stops what still runs, when fx will not: it calls no stop hook once its context has ended.
func (n *node) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), fx.DefaultTimeout)
	defer cancel()
	n.mu.Lock()
	parts := append([]*runningPart(nil), n.parts...)
	n.mu.Unlock()
	for i := len(parts) - 1; i >= 0; i-- {
		if err := n.stop(ctx, parts[i]); err != nil {
			n.log.Error("fxmodule: stop", "err", err)
		}
	}
}

// stop ends p, once, and waits for its share of the time that is left. A part that needs longer is left behind: what
// stops after it must have its time too.
func (n *node) stop(ctx context.Context, p *runningPart) error {
	p.once.Do(func() {
		go func() {
			p.err = p.part.stop()
			close(p.done)
		}()
	})
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
