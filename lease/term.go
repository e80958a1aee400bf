package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// term is one acquisition and how far it may be trusted without asking the table.
type term struct {
	name   string
	number int64
	ttl    time.Duration
	life   context.Context // ends with the term: cause ErrLost, or errOver after its regular end
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	until   time.Time
	watch   *time.Timer // ends the term at until, also while the heartbeat hangs
	trouble error       // of the last renewal
}

var errOver = errors.New("the lease was given back")

func newTerm(ctx context.Context, name string, number int64, ttl time.Duration, attempt time.Time) *term {
	t := &term{name: name, number: number, ttl: ttl, until: trustUntil(attempt, ttl)}
	t.life, t.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	t.mu.Lock() // a term that comes too late expires at once
	defer t.mu.Unlock()
	t.watch = time.AfterFunc(time.Until(t.until), t.expire)
	return t
}

// trustUntil leaves a margin, in which the holder finds out that its time is over.
func trustUntil(attempt time.Time, ttl time.Duration) time.Time { return attempt.Add(ttl - ttl/10) }

func (t *term) trusted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life.Err() == nil && time.Now().Before(t.until)
}

// endsBy reports whether the term is not trusted any more at the given time.
func (t *term) endsBy(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !at.Before(t.until)
}

// extend trusts the term as from the start of a successful attempt.
func (t *term) extend(attempt time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until, t.trouble = trustUntil(attempt, t.ttl), nil
	if t.life.Err() == nil {
		t.watch.Reset(time.Until(t.until))
	}
}

// fail remembers why a renewal did not work; the term goes on while it is trusted.
func (t *term) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble = err
}

func (t *term) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().Before(t.until) {
		return // extended while the watch went off
	}
	t.loseLocked(errors.Join(errors.New("not renewed in time"), t.trouble))
}

func (t *term) lose(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loseLocked(why)
}

func (t *term) loseLocked(why error) {
	t.watch.Stop()
	t.cancel(fmt.Errorf("lease: %s: %w: term %d: %w", t.name, ErrLost, t.number, why))
}

// end ends the term after its work and returns ErrLost with its reason if it had been lost by then.
func (t *term) end() (lost error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() == nil && !time.Now().Before(t.until) {
		t.loseLocked(errors.New("not renewed in time"))
	}
	t.watch.Stop()
	t.cancel(errOver)
	if cause := context.Cause(t.life); !errors.Is(cause, errOver) {
		return cause
	}
	return nil
}
