package schema

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// busyTries bounds the waiting for other processes' locks on an SQLite file to some five seconds.
const busyTries = 1000

// patiently calls try again while another process has the SQLite file locked. The pauses are in Go, where
// they end with ctx, and not in the driver.
func patiently(ctx context.Context, try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(sqlite{}.classify(err), ErrConflict) || n == busyTries {
			return err
		}
		select {
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
