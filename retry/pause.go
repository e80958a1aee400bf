package retry

import (
	"context"
	"time"
)

// Pauses are pauses that double each time, from the first up to the longest.
type Pauses struct {
	First, Longest time.Duration
	last           time.Duration
}

// Next is the next pause.
func (p *Pauses) Next() time.Duration {
	p.last = min(max(2*p.last, p.First), p.Longest)
	return p.last
}

// Reset begins with the first again.
func (p *Pauses) Reset() { p.last = 0 }

// Sleep waits for a pause to pass or for ctx to end.
func Sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
