package saga

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/norn-go/norn/schema"
)

// Run does the engine's housekeeping until ctx ends: it measures the clock, forgets handled event ids and
// tombstones after their retention, and carries wake-ups between processes. Handling works without it. Any
// number of nodes may run it at once. It returns nil when all of that has ended.
func (e *Engine) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { e.every(ctx, "measure the clock", e.cfg.MeasureEvery, e.measure) })
	running.Go(func() { e.every(ctx, "prune", pruneEvery, e.prune) })
	if e.cfg.Listen && e.db.CanListen() {
		running.Go(func() { e.listen(ctx) })
		running.Go(func() { e.notify(ctx) })
	}
	running.Wait()
	return nil
}

const (
	pruneEvery = time.Minute
	pruneBatch = 500
	// coalesce is how long a wake-up of other processes waits for more.
	coalesce = 20 * time.Millisecond
)

// every runs work at once and then again and again, each pause a little different.
func (e *Engine) every(ctx context.Context, what string, pause time.Duration, work func(context.Context) error) {
	t := trouble{e: e, what: what}
	for ctx.Err() == nil {
		t.tell(ctx, work(ctx))
		select {
		case <-time.After(pause - pause/10 + rand.N(pause/5)):
		case <-ctx.Done():
		}
	}
}

// trouble is logged once when it begins and once when it is over.
type trouble struct {
	e       *Engine
	what    string
	failing bool
}

func (t *trouble) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && !t.failing:
		t.e.cfg.Logger.Error("saga: housekeeping fails", "what", t.what, "err", err)
	case err == nil && t.failing:
		t.e.cfg.Logger.Info("saga: housekeeping works again", "what", t.what)
	}
	t.failing = err != nil
}

// skewWorthALine is the skew from which on it is reported.
const skewWorthALine = time.Second

func (e *Engine) measure(ctx context.Context) error {
	skew, err := e.cfg.Clock.Measure(ctx)
	if err != nil {
		return err
	}
	if skewed := skew.Abs() >= skewWorthALine; skewed != e.skewed.Swap(skewed) {
		e.cfg.Logger.Warn("saga: the process clock differs from the database's, which counts", "skew", skew)
	}
	return nil
}

// prune forgets in small batches, so that no commit waits long for it.
func (e *Engine) prune(ctx context.Context) error {
	now := e.cfg.Now()
	steps := []func(context.Context) (int64, error){
		func(ctx context.Context) (int64, error) {
			return e.store.pruneEvents(ctx, now.Add(-e.cfg.EventRetention), pruneBatch)
		},
	}
	if e.cfg.InstanceRetention > 0 {
		steps = append(steps, func(ctx context.Context) (int64, error) {
			return e.store.pruneEnded(ctx, now.Add(-e.cfg.InstanceRetention), pruneBatch)
		})
	}
	for _, step := range steps {
		for {
			n, err := step(ctx)
			if err != nil && !schema.Retryable(err) {
				return fmt.Errorf("saga: prune: %w", err)
			}
			if n < pruneBatch || ctx.Err() != nil {
				break
			}
		}
	}
	return nil
}

// listen wakes this process' poller and relay when another process committed.
func (e *Engine) listen(ctx context.Context) {
	t := trouble{e: e, what: "listen"}
	e.every(ctx, "listen again", time.Second, func(ctx context.Context) error {
		t.tell(ctx, e.db.Listen(ctx, func() {
			t.tell(ctx, nil)
			e.cfg.Signal.Notify(time.Time{})
			e.cfg.Outbox.Notify()
		}))
		return nil
	})
}

// notify wakes other processes, once for all commits of a short while.
func (e *Engine) notify(ctx context.Context) {
	for {
		select {
		case <-e.others:
		case <-ctx.Done():
			return
		}
		if err := e.db.NotifyOthers(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Logger.Debug("saga: waking other processes", "err", err)
		}
		select {
		case <-time.After(coalesce):
		case <-ctx.Done():
			return
		}
	}
}
