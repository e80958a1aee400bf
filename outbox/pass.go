package outbox

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/norn-go/norn/retry"
)

// lead makes passes until the term ends.
func (r *Relay) lead(term context.Context, c *crew) {
	again := retry.Pauses{First: 100 * time.Millisecond, Longest: min(5*time.Second, r.cfg.Interval)}
	unspun := retry.Pauses{First: 10 * time.Millisecond, Longest: min(time.Second, r.cfg.Interval)}
	var reported time.Time
	for term.Err() == nil {
		until, err := r.look(term, c)
		switch {
		case term.Err() != nil:
			return
		case err != nil:
			r.looking.Seen(err)
			retry.Sleep(term, again.Next())
			continue
		}
		r.looking.Over()
		again.Reset()
		if now := time.Now(); now.Sub(reported) >= r.cfg.Interval {
			reported = now
			r.reportForeign(term)
		}
		r.sleep(term, until)
		if r.left.Swap(0) > 0 {
			retry.Sleep(term, unspun.Next())
		} else {
			unspun.Reset()
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
	return r.store.next(term, r.scope, latest, r.flights.list())
}

// pass starts a worker for each saga that has a command to deliver now, as soon as there is room.
func (r *Relay) pass(term context.Context, crew *crew) (began int, err error) {
	select {
	case r.passing <- struct{}{}:
		defer func() { <-r.passing }()
	case <-term.Done():
		return 0, context.Cause(term)
	}
	cutoff := r.cfg.Now()
	var last candidate
	for {
		r.reads.Add(1)
		found, err := r.store.due(term, r.scope, cutoff, last, r.flights.list(), r.cfg.BatchSize)
		if err != nil {
			return began, err
		}
		for _, c := range found {
			if !c.First {
				continue
			}
			select {
			case r.room <- struct{}{}:
			case <-term.Done():
				return began, context.Cause(term)
			}
			if r.begin(term, crew, c.saga, cutoff) {
				began++
			}
		}
		if len(found) < r.cfg.BatchSize {
			return began, nil
		}
		last = found[len(found)-1]
	}
}

// begin starts a worker on a token of room, which the worker gives back. A look at the table that left
// the saga out because of the worker is made up for.
func (r *Relay) begin(term context.Context, c *crew, of saga, cutoff time.Time) bool {
	if !r.flights.begin(of) {
		<-r.room
		return false
	}
	c.working.Go(func() {
		last := unknown
		defer func() {
			r.flights.end(of)
			<-r.room
			if last == unknown {
				r.left.Add(1) // a handler ended its goroutine, or the table could not be read
			}
			if last != r.reads.Load() {
				r.alarm.set(r.cfg.Now())
			}
		}()
		last = r.turn(term, c, of, cutoff)
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
		r.cfg.Logger.Warn("outbox: overdue commands that this node cannot deliver", "kinds", foreign,
			"mend", "register a command handler or a sink for them here, or run a process that has one")
	case changed:
		r.cfg.Logger.Info("outbox: no overdue commands any more that this node cannot deliver")
	}
}
