package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/norn-go/norn/retry"
)

// Run holds the lease for as long as it can until ctx ends, and runs fn while it does. It tries to take
// the lease at once, then at least every interval, and right when it expires: after the crash of a holder nobody waits
// longer than the TTL. That it waits for another holder is logged once for each. Whatever goes wrong (the lease lost, an
// error or a panic of fn, the database gone) is logged once when it begins and once when it is over, and Run goes on
// after a pause that grows up to the interval.
//
// It returns nil after ctx has ended and fn is back, with the lease given back; an error only for an
// interval that is not positive. It may be called again afterwards.
func (l *Locker) Run(ctx context.Context, interval time.Duration, fn func(ctx context.Context) error) error {
	if interval <= 0 {
		return fmt.Errorf("lease: run %s: interval must be positive, got %v", l.name, interval)
	}
	s := newSupervisor(l, interval)
	for ctx.Err() == nil {
		worked := false
		err := l.Hold(ctx, func(ctx context.Context) error {
			worked = true
			defer s.working(l.Term())()
			return fn(ctx)
		})
		if ctx.Err() != nil {
			return nil
		}
		pause := shortened(interval)
		switch {
		case err == nil:
			s.fine("lease given back")
		case errors.Is(err, ErrHeld):
			s.waits(err)
			pause = untilFree(err, pause)
		default:
			pause = shortened(s.failed(err, worked && !errors.Is(err, ErrLost)))
		}
		retry.Sleep(ctx, pause)
	}
	return nil
}

// shortened takes up to a fifth off a pause, so that nodes started together do not ask together.
func shortened(pause time.Duration) time.Duration {
	return pause - time.Duration(rand.Float64()*0.2*float64(pause))
}
