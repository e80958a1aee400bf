package deadline

import (
	"sync"
	"time"
)

// Signal carries "something is due earlier than you think" from commits to the poller of the same
// process. It holds the earliest time not yet taken. The zero value is not usable: see [NewSignal].
type Signal struct {
	mu       sync.Mutex
	earliest time.Time
	pending  bool
	c        chan struct{}
}

// NewSignal makes a signal with nothing pending.
func NewSignal() *Signal { return &Signal{c: make(chan struct{}, 1)} } // one: a wake-up waiting says it all

// Notify tells that a deadline due at the given time was committed. It never blocks.
func (s *Signal) Notify(due time.Time) {
	s.mu.Lock()
	if !s.pending || due.Before(s.earliest) {
		s.earliest, s.pending = due, true
	}
	s.mu.Unlock()
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C receives after a Notify; one value may stand for many.
func (s *Signal) C() <-chan struct{} { return s.c }

// Take returns the earliest time told since the last Take, and whether there was any.
func (s *Signal) Take() (earliest time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	earliest, ok = s.earliest, s.pending
	s.pending = false
	return earliest, ok
}
