package poller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/norn-go/norn/retry"
)

// loop makes passes until ctx ends. What it dispatched is waited for by Run.
func (p *Poller) loop(ctx, work context.Context) {
	trouble := retry.NewTrouble(p.log, "sweep trouble")
	pauses := retry.Pauses{First: 100 * time.Millisecond, Longest: min(p.cfg.Interval, 5*time.Second)}
	for ctx.Err() == nil {
		next, err := p.guarded(ctx, work)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			trouble.Seen(err)
			retry.Sleep(ctx, pauses.Next())
		default:
			trouble.Over()
			pauses.Reset()
			p.await(ctx, next)
		}
	}
}

// guarded makes one pass and finds out when the next one is wanted; a panic is an error.
func (p *Poller) guarded(ctx, work context.Context) (next time.Time, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("poller: sweep: panic: %v\n%s", v, debug.Stack())
		}
	}()
	var dispatched sync.WaitGroup // flight knows better, for all passes
	if err := p.pass(ctx, work, &dispatched); err != nil {
		return time.Time{}, err
	}
	return p.next(ctx)
}

// next is when the next pass is wanted by the framework clock: when something is due, at most an interval
// from now.
func (p *Poller) next(ctx context.Context) (time.Time, error) {
	latest := p.cfg.Now().Add(p.cfg.Interval)
	at, ok, err := p.store.Next(ctx, p.dispatcher.Kinds(), p.flight.tokens())
	if err != nil || !ok || at.After(latest) {
		return latest, err
	}
	return at, nil
}

// await sleeps until next, or until a signal tells of something earlier that has become due.
func (p *Poller) await(ctx context.Context, next time.Time) {
	for ctx.Err() == nil {
		timer := time.NewTimer(p.until(next))
		select {
		case <-ctx.Done():
		case <-timer.C:
			return
		case <-p.cfg.Signal.C():
			if earliest, ok := p.cfg.Signal.Take(); ok && earliest.Before(next) {
				next = p.earlier(ctx, earliest)
			}
		}
		timer.Stop()
	}
}

// earlier is what a signal makes of the next pass' time: the zero time asks for a look at the table.
func (p *Poller) earlier(ctx context.Context, told time.Time) time.Time {
	if !told.IsZero() {
		return told
	}
	next, err := p.next(ctx)
	if err != nil {
		return p.cfg.Now() // the pass meets the same trouble and reports it
	}
	return next
}

// until is how long to sleep until next by the framework clock, which may have stepped: never less than
// nothing, never more than an interval. What lies ahead is worth at least a millisecond.
func (p *Poller) until(next time.Time) time.Duration {
	pause := min(next.Sub(p.cfg.Now()), p.cfg.Interval)
	if pause > 0 {
		pause = max(pause, time.Millisecond)
	}
	return max(pause, p.rest.remaining())
}
