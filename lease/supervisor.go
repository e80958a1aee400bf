package lease

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/norn-go/norn/retry"
)

// supervisor knows whether things go well, logs when that changes, and says how long to pause.
type supervisor struct {
	log     *slog.Logger
	plain   *slog.Logger  // without this holder
	healthy time.Duration // work that lasts this long has got over its trouble
	trouble *retry.Trouble

	mu      sync.Mutex
	pauses  retry.Pauses
	waited  string // for this holder
	failing bool
	inWork  bool // the trouble is of the work, not of the lease
}

func newSupervisor(l *Locker, longest time.Duration) *supervisor {
	return &supervisor{
		log: l.log, plain: l.plain, healthy: l.ttl / 3,
		trouble: retry.NewTrouble(l.log, "lease trouble"),
		pauses:  retry.Pauses{First: 100 * time.Millisecond, Longest: longest},
	}
}

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
	s.trouble.Seen(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failing {
		s.failing, s.inWork = true, inWork
	}
	return s.pauses.Next()
}

// fine notes that there is no trouble, or none any more.
func (s *supervisor) fine(why string) {
	s.trouble.Over("now", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing, s.inWork = false, false
	s.pauses.Reset()
}
