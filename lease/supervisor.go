package lease

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// supervisor knows whether things go well, logs when that changes, and says how long to pause.
type supervisor struct {
	log     *slog.Logger
	plain   *slog.Logger  // without this holder
	longest time.Duration // pause
	healthy time.Duration // work that lasts this long has got over its trouble

	mu       sync.Mutex
	failures int
	since    time.Time
	waited   string // for this holder
	inWork   bool   // the trouble is of the work, not of the lease
}

const firstPause = 100 * time.Millisecond

// working notes that the lease was taken under a term; the function returned notes that work is back.
func (s *supervisor) working(term int64) (back func()) {
	s.log.Info("lease taken", "term", term)
	s.mu.Lock()
	inWork := s.inWork
	s.waited = ""
	s.mu.Unlock()
	if !inWork {
		s.fine("lease taken again")
	}
	proof := time.AfterFunc(s.healthy, func() { s.fine("work goes on") })
	return func() { proof.Stop() }
}

// waits notes that another holder has the lease.
func (s *supervisor) waits(err error) {
	s.fine("lease held by another")
	held, ok := errors.AsType[*heldError](err)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited != held.holder {
		s.waited = held.holder
		s.plain.Info("lease is held by another process; waiting", "holder", held.holder, "until", held.until)
	}
}

// failed notes trouble, of the work or of the lease, and returns the pause before the next try.
func (s *supervisor) failed(err error, inWork bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures++; s.failures == 1 {
		s.since, s.inWork = time.Now(), inWork
		s.log.Warn("lease trouble", "err", err)
	}
	pause := firstPause
	for i := 1; i < s.failures && pause < s.longest; i++ {
		pause *= 2
	}
	return min(pause, s.longest)
}

// fine notes that there is no trouble, or none any more.
func (s *supervisor) fine(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		s.log.Info("lease trouble over", "now", why, "failures", s.failures, "lasted", time.Since(s.since))
	}
	s.failures, s.inWork = 0, false
}
