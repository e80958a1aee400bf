package lease

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Hold takes the lease, runs fn, and gives the lease back when fn has returned, however it ended; a
// panic of fn becomes an error with its stack. When ctx ends, the lease is still renewed until fn is back.
//
// Errors: [ErrHeld] if another holder has the lease, fn's context was then never made; one that wraps
// [ErrLost] if the lease was lost before fn returned; else fn's own, or why the table could not be asked.
// An attempt to take the lease lasts at most a third of the TTL.
func (l *Locker) Hold(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	s := newSession(l)
	t, err := s.start(ctx)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(context.Cause(t.life)) })()
	l.enter(t)
	defer func() {
		lost := t.end()
		l.leave(t)
		s.finish()
		err = joined(lost, err)
	}()
	return protected(work, fn)
}

func (l *Locker) enter(t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = t
}

func (l *Locker) leave(t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == t {
		l.held = nil
	}
}

// joined adds to the error of work that its lease was lost, unless it says so or only says that its
// context ended.
func joined(lost, err error) error {
	switch {
	case lost == nil, errors.Is(err, ErrLost):
		return err
	case err == nil, errors.Is(err, context.Canceled):
		return lost
	}
	return errors.Join(lost, err)
}

func protected(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("lease: panic: %v\n%s", v, debug.Stack())
		}
	}()
	return fn(ctx)
}

// statementTime is how long one attempt may take.
func (l *Locker) statementTime() time.Duration { return l.ttl / 3 }
