// Package retry says when failed work is tried again, and when it is given up.
package retry

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Policy is exponential backoff with jitter and a limit of attempts.
type Policy struct {
	MaxAttempts  int           // failures until work is given up; 0: never
	Initial, Max time.Duration // the pause after the first failure, doubled up to the longest
	Jitter       float64       // each pause is taken at random from ± this part of itself; 0 ≤ Jitter < 1
}

// Default is the policy of all stored work unless configured: about two days of trying.
var Default = Policy{MaxAttempts: 50, Initial: 5 * time.Second, Max: time.Hour, Jitter: 0.2}

// Check reports everything in p that makes no sense.
func (p Policy) Check() (errs []error) {
	if p.MaxAttempts < 0 {
		errs = append(errs, fmt.Errorf("retry: max attempts must not be negative, got %d", p.MaxAttempts))
	}
	if p.Initial <= 0 || p.Max < p.Initial {
		errs = append(errs, fmt.Errorf("retry: want 0 < initial ≤ max, got %v and %v", p.Initial, p.Max))
	}
	if !(p.Jitter >= 0 && p.Jitter < 1) {
		errs = append(errs, fmt.Errorf("retry: want 0 ≤ jitter < 1, got %v", p.Jitter))
	}
	return errs
}

// Next is the pause after the given number of failures, 1 first, and whether there is one at all.
func (p Policy) Next(failures int) (pause time.Duration, again bool) {
	if p.MaxAttempts > 0 && failures >= p.MaxAttempts {
		return 0, false
	}
	pause = p.Initial
	for i := 1; i < failures && pause < p.Max; i++ {
		pause *= 2
	}
	pause = min(pause, p.Max)
	return pause + time.Duration((rand.Float64()*2-1)*p.Jitter*float64(pause)), true
}
