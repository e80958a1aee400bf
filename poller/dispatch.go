package poller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/retry"
)

// dispatch runs one selected row to its end. The loop is told when to look again only when the row is no
// longer in flight: before, it would not see it.
func (p *Poller) dispatch(lead, work context.Context, r *row) {
	r.turn()
	again, wanted := p.attempt(lead, work, r.Due)
	p.flight.remove(r)
	if wanted {
		p.cfg.Signal.Notify(again)
	}
}

// attempt dispatches d and returns when it wants another pass, if it does. A row whose turn comes when the
// lease may be gone is dropped: it stays in the table for whoever leads then.
func (p *Poller) attempt(lead, work context.Context, d deadline.Due) (again time.Time, wanted bool) {
	if lead.Err() != nil || !p.locker.Held() {
		p.stats.dropped()
		return p.cfg.Now(), true
	}
	p.stats.started(d, p.cfg.Now())
	err := p.protected(work, d)
	switch {
	case err == nil:
		p.stats.fired()
		return time.Time{}, false
	case retry.IsUncounted(err), work.Err() != nil && !retry.IsPermanent(err):
		return p.left(d, err), true
	}
	return p.fail(work, d, err)
}

func (p *Poller) protected(ctx context.Context, d deadline.Due) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("poller: dispatch %s: panic: %v\n%s", d.Key, v, debug.Stack())
		}
	}()
	return p.dispatcher.Dispatch(ctx, d)
}

// left lets a row stay as it is; the next pass comes after a pause.
func (p *Poller) left(d deadline.Due, err error) (again time.Time) {
	p.stats.left()
	p.log.Debug("deadline left for the next sweep", "saga", d.Type, "id", d.ID, "deadline", d.Name, "err", err)
	return p.cfg.Now().Add(p.rest.left())
}

// fail records a failed attempt in a transaction of its own. If that does not work either, the row is left.
func (p *Poller) fail(work context.Context, d deadline.Due, cause error) (again time.Time, wanted bool) {
	pause, retried := p.cfg.Retry.Next(d.Attempts + 1)
	park := !retried || retry.IsPermanent(cause)
	again = p.cfg.Now()
	if !park {
		again = again.Add(pause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), recordTimeout)
	defer cancel()
	there, err := p.store.Fail(ctx, d, cause, again, park)
	if err != nil {
		return p.left(d, err), true
	}
	if !there { // cancelled, rescheduled or recorded meanwhile: the table knows what is next
		return time.Time{}, true
	}
	p.stats.failed(park)
	p.reportFailure(d, cause, park)
	return again, !park
}

const recordTimeout = 10 * time.Second

// reportFailure logs the first failure of a deadline and its parking; those between are the same trouble.
func (p *Poller) reportFailure(d deadline.Due, cause error, park bool) {
	log := p.log.With("saga", d.Type, "id", d.ID, "deadline", d.Name, "attempt", d.Attempts+1, "err", cause)
	switch {
	case park:
		log.Error("deadline parked")
	case d.Attempts == 0:
		log.Warn("deadline failed, it is tried again")
	default:
		log.Debug("deadline failed again")
	}
}
