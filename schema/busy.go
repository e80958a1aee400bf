package schema

import (
	"context"
	"math/rand/v2"
	"time"
)

// patience bounds the waiting for other processes' locks on an SQLite file. A try may itself wait, in the driver, as
// long as the busy timeout is.
const patience = 5 * time.Second

// patiently calls try again while another process has the SQLite file locked. The pauses are in Go, where
// they end with ctx, and not in the driver.
func patiently(ctx context.Context, try func() error) error {
	for end := time.Now().Add(patience); ; {
		err := try()
		if !busy(err) || !time.Now().Before(end) {
			return err
		}
		select {
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
