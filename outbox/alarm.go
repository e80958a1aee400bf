package outbox

import (
	"sync"
	"time"
)

// alarm is when the relay looks at the table again at the latest. Workers move it forward.
type alarm struct {
	mu sync.Mutex
	at time.Time // zero: not set
	c  chan struct{}
}

func newAlarm() *alarm { return &alarm{c: make(chan struct{}, 1)} } // one: a change waiting says it all

// set moves the alarm forward to at, if it is later or not set.
func (a *alarm) set(at time.Time) {
	a.mu.Lock()
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
	a.mu.Unlock()
	select {
	case a.c <- struct{}{}:
	default:
	}
}

// time is when the alarm goes off; false: it is not set.
func (a *alarm) time() (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at, !a.at.IsZero()
}

// clear is called before a look at the table, which finds all that was set before.
func (a *alarm) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Time{}
}
