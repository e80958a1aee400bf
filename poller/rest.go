package poller

import (
	"sync"
	"time"

	"github.com/norn-go/norn/deadline"
)

// rest keeps the loop from reading again and again what stays where it is: rows that were left, and a
// first row that is still the first although its dispatch went well.
type rest struct {
	mu     sync.Mutex
	now    int // rows left since the last pass began
	streak int // passes in a row after which rows were left
	first  attempt
	until  time.Time // process clock
}

// attempt tells a row from itself after a failure.
type attempt struct {
	token string
	at    time.Time
}

const (
	shortestRest = 10 * time.Millisecond
	longestRest  = time.Second
)

func (r *rest) passBegins() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now > 0 {
		r.streak++
	} else {
		r.streak = 0
	}
	r.now = 0
}

// head notes the first row of a pass.
func (r *rest) head(d deadline.Due) {
	first := attempt{d.Token, d.NextAt.Time}
	r.mu.Lock()
	same := r.first == first
	r.first = first
	r.mu.Unlock()
	if same {
		r.left()
	}
}

// left notes a row left and returns the pause until the next pass.
func (r *rest) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	pause := min(shortestRest<<min(r.streak, 10), longestRest)
	r.until = time.Now().Add(pause)
	return pause
}

// remaining is how long no pass may begin.
func (r *rest) remaining() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until))
}
