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

// turn delivers a saga's commands in order, until one is not due or fails, or until enough of them went
// and other sagas may be waiting for room. It reports whether the saga may have one to deliver that a pass left out because of this turn.
func (r *Relay) turn(term context.Context, c *crew, of saga, cutoff time.Time) (missed bool) {
	for n := 0; n < r.cfg.BatchSize || len(r.room) < cap(r.room); n++ {
		reads := r.reads.Load()
		if term.Err() != nil || !r.locker.Held() {
			return false
		}
		w, ok, err := r.store.head(term, of)
		if err != nil {
			r.left.Add(1)
			return true
		}
		if !ok || !r.scope.knows(w.SagaType, w.Type) || w.nextAt.After(later(cutoff, r.cfg.Now())) {
			return r.reads.Load() != reads
		}
		if !r.deliver(term, c, w) {
			return r.reads.Load() != reads
		}
	}
	return true
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
	again := growing{first: 100 * time.Millisecond, longest: 5 * time.Second}
	for {
		over := term.Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(term), recordTime)
		err := write(ctx)
		cancel()
		if err == nil {
			r.writing.over()
			return true
		}
		r.writing.seen(err)
		if over {
			return false
		}
		pause(term, again.next())
	}
}
