package outbox

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// lead makes passes until the term ends.
func (r *Relay) lead(term context.Context, c *crew) {
	again := growing{first: 100 * time.Millisecond, longest: min(5*time.Second, r.cfg.Interval)}
	unspun := growing{first: 10 * time.Millisecond, longest: min(time.Second, r.cfg.Interval)}
	var reported time.Time
	for term.Err() == nil {
		until, err := r.look(term, c)
		switch {
		case term.Err() != nil:
			return
		case err != nil:
			r.looking.seen(err)
			pause(term, again.next())
			continue
		}
		r.looking.over()
		again.reset()
		if now := time.Now(); now.Sub(reported) >= r.cfg.Interval {
			reported = now
			r.reportForeign(term)
		}
		r.sleep(term, until)
		if r.left.Swap(0) > 0 {
			pause(term, unspun.next())
		} else {
			unspun.reset()
		}
	}
}

// look makes a pass and says when the next is due, unless something wakes the relay before.
func (r *Relay) look(term context.Context, c *crew) (until time.Time, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("outbox: panic: %v\n%s", v, debug.Stack())
		}
	}()
	r.alarm.clear()
	if _, err := r.pass(term, c); err != nil {
		return until, err
	}
	latest := r.cfg.Now().Add(r.cfg.Interval)
	r.reads.Add(1)
	next, ok, err := r.store.next(term, r.scope, r.flights.list())
	if err != nil || !ok || next.After(latest) {
		return latest, err
	}
	return next, nil
}

// pass starts a worker for each saga that has a command to deliver now, as soon as there is room.
func (r *Relay) pass(term context.Context, c *crew) (began int, err error) {
	select {
	case r.passing <- struct{}{}:
		defer func() { <-r.passing }()
	case <-term.Done():
		return 0, context.Cause(term)
	}
	cutoff := r.cfg.Now()
	var last head
	for {
		r.reads.Add(1)
		heads, err := r.store.heads(term, r.scope, cutoff, last, r.flights.list(), r.cfg.BatchSize)
		if err != nil {
			return began, err
		}
		for _, h := range heads {
			select {
			case r.room <- struct{}{}:
			case <-term.Done():
				return began, context.Cause(term)
			}
			if r.begin(term, c, h.saga, cutoff) {
				began++
			}
		}
		if len(heads) < r.cfg.BatchSize {
			return began, nil
		}
		last = heads[len(heads)-1]
	}
}

// begin starts a worker on a token of room, which the worker gives back.
func (r *Relay) begin(term context.Context, c *crew, of saga, cutoff time.Time) bool {
	if !r.flights.begin(of) {
		<-r.room
		return false
	}
	c.working.Go(func() {
		missed, back := true, false
		defer func() {
			if !back { // a handler ended its goroutine
				r.left.Add(1)
			}
			r.flights.end(of)
			<-r.room
			if missed {
				r.alarm.set(r.cfg.Now())
			}
		}()
		missed = r.turn(term, c, of, cutoff)
		back = true
	})
	return true
}

// sleep returns at a time, or before when commands were committed, a worker wants it, or the term ends.
// It never sleeps longer than the interval, so that a clock that is set back delays nothing for longer.
func (r *Relay) sleep(term context.Context, until time.Time) {
	longest := time.NewTimer(r.cfg.Interval)
	defer longest.Stop()
	for {
		if at, ok := r.alarm.time(); ok && at.Before(until) {
			until = at
		}
		wait := until.Sub(r.cfg.Now())
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.alarm.c:
			timer.Stop()
			continue
		case <-r.cfg.Signal.C():
		case <-timer.C:
		case <-longest.C:
		case <-term.Done():
		}
		timer.Stop()
		return
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reportForeign tells when the kinds change that wait for a node that knows them. Only what another
// node would have delivered by now counts.
func (r *Relay) reportForeign(term context.Context) {
	foreign, err := r.store.foreign(term, r.scope, r.cfg.Now().Add(-r.cfg.Interval))
	if err != nil {
		return // the next pass meets the same trouble and tells
	}
	changed := false
	r.count(func(s *Stats) {
		changed = !slices.Equal(s.Foreign, foreign)
		s.Foreign = foreign
	})
	switch {
	case changed && len(foreign) > 0:
		r.cfg.Logger.Warn("outbox: overdue commands that this node cannot deliver", "kinds", foreign)
	case changed:
		r.cfg.Logger.Info("outbox: no overdue commands any more that this node cannot deliver")
	}
}
