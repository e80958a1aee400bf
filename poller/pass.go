package poller

import (
	"context"
	"sync"

	"github.com/norn-go/norn/deadline"
)

// pass reads what is due, judged once at its start, batch after batch until one is not full, and
// dispatches it. It waits for room, not for what it dispatched; that is counted in dispatched.
func (p *Poller) pass(ctx, work context.Context, dispatched *sync.WaitGroup) (err error) {
	select {
	case p.passing <- struct{}{}:
		defer func() { <-p.passing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.rest.passBegins()
	cutoff, kinds := p.cfg.Now(), p.dispatcher.Kinds()
	var last *deadline.Due
	for {
		if err := p.flight.room(ctx, p.cfg.BatchSize); err != nil {
			return err
		}
		due, err := p.store.Find(ctx, deadline.Sweep{
			Kinds: kinds, Cutoff: cutoff, After: last, Skip: p.flight.tokens(), Limit: p.cfg.BatchSize,
		})
		if err != nil {
			return err
		}
		p.stats.read(len(due))
		if last == nil && len(due) > 0 {
			p.rest.head(due[0])
		}
		for _, d := range due {
			r := p.flight.add(d)
			dispatched.Go(func() { p.dispatch(ctx, work, r) })
		}
		if len(due) < p.cfg.BatchSize {
			break
		}
		last = &due[len(due)-1]
	}
	p.stats.swept(p.cfg.Now())
	return p.reportForeign(ctx, kinds, cutoff)
}
