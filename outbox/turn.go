package outbox

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/norn-go/norn/retry"
)

// recordTime is how long one try may take to record how a delivery ended.
const recordTime = 5 * time.Second

// Instead of a number of reads: how far a turn came.
const (
	unknown int64 = -1 // it did not end by itself
	midway  int64 = -2 // the saga may have more to deliver
)

// turn delivers a saga's commands in order, until one is not due or fails, or until enough of them went
// and other sagas may be waiting for room. It returns the number of reads before it last looked at the
// saga: whatever was read later may have left out something new.
func (r *Relay) turn(term context.Context, c *crew, of saga, cutoff time.Time) (reads int64) {
	for n := 0; n < r.cfg.BatchSize || len(r.room) < cap(r.room); n++ {
		reads = r.reads.Load()
		if term.Err() != nil || !r.locker.Held() {
			return reads
		}
		w, ok, err := r.store.head(term, of)
		if err != nil {
			if term.Err() == nil && r.failing.news("reading a command") {
				r.cfg.Logger.Warn("outbox: command unreadable", "saga", of.Type, "id", of.ID, "err", err)
			}
			return unknown
		}
		due := ok && r.scope.knows(w.SagaType, w.Type) && !w.nextAt.After(later(cutoff, r.cfg.Now()))
		if !due || !r.deliver(term, c, w) {
			return reads
		}
	}
	return midway
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// deliver makes one attempt and records how it ended. It reports whether the saga may go on.
func (r *Relay) deliver(term context.Context, c *crew, w waiting) (goOn bool) {
	err := r.attempt(c.life, w)
	switch {
	case err == nil:
		return r.removed(term, w)
	case retry.IsUncounted(err), c.life.Err() != nil:
		r.left.Add(1)
		r.cfg.Logger.Debug("outbox: command left as it is", logged(w, err)...)
		r.alarm.set(r.cfg.Now())
		return false
	}
	return r.failed(term, w, err)
}

func (r *Relay) attempt(life context.Context, w waiting) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("outbox: deliver %s %s: panic: %v\n%s", w.Type, w.ID, v, debug.Stack())
		}
	}()
	if w.broken != nil {
		return w.broken
	}
	return r.chain(life, w.Command)
}

func (r *Relay) removed(term context.Context, w waiting) bool {
	ok := r.record(term, func(ctx context.Context) error { return r.store.delivered(ctx, w.seq) })
	if ok {
		r.progress.Add(1)
		r.count(func(s *Stats) { s.Delivered++ })
	}
	return ok
}

// failed reports whether the saga may go on: when w was parked.
func (r *Relay) failed(term context.Context, w waiting, cause error) bool {
	pause, again := r.cfg.Retry.Next(w.attempts + 1)
	park := !again || retry.IsPermanent(cause)
	ok := r.record(term, func(ctx context.Context) error {
		at := r.cfg.Now()
		if !park {
			at = at.Add(pause)
			defer r.alarm.set(at)
		}
		return r.store.failed(ctx, w, cause, at, park)
	})
	if !ok {
		return false
	}
	r.progress.Add(1)
	r.count(func(s *Stats) {
		s.Failed++
		if park {
			s.Parked++
		}
	})
	switch {
	case park:
		r.cfg.Logger.Error("outbox: command parked", logged(w, cause)...)
	case r.failing.news(w.Type):
		r.cfg.Logger.Warn("outbox: commands of this type fail", logged(w, cause)...)
	}
	return park
}

func logged(w waiting, err error) []any {
	return []any{"saga", w.SagaType, "id", w.SagaID, "command", w.ID, "type", w.Type, "attempt", w.Attempt, "err", err}
}

// record writes how a delivery ended, apart from any context that could end meanwhile. While it does
// not work it is tried again, because the command would else be delivered once more; after the term it
// is tried once.
func (r *Relay) record(term context.Context, write func(context.Context) error) bool {
	again := retry.Pauses{First: 100 * time.Millisecond, Longest: 5 * time.Second}
	for {
		over := term.Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(term), recordTime)
		err := write(ctx)
		cancel()
		if err == nil {
			r.writing.Over()
			return true
		}
		r.writing.Seen(err)
		if over {
			return false
		}
		retry.Sleep(term, again.Next())
	}
}
