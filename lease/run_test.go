package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

const interval = 10 * time.Second

// running starts a Run whose work goes on until its context ends.
func running(t *testing.T, l *lease.Locker) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, interval, untilOver) }()
	return func() { cancel(); require.NoError(t, <-ended) }
}

func untilOver(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

func TestRunRefusesAnIntervalThatIsNone(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		require.EqualError(t, locker(db).Run(t.Context(), 0, nothing), "lease: run sweep: interval must be positive, got 0s")
	})
}

func TestRunTakesTheLeaseAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		l := locker(db)
		begun := time.Now()
		require.NoError(t, func() error {
			ctx, cancel := context.WithCancel(t.Context())
			return l.Run(ctx, interval, func(context.Context) error { cancel(); return nil })
		}())
		require.WithinDuration(t, begun, time.Now(), 0)
	})
}

func TestCleanStopHandsOverAtTheNextTry(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		first, second := locker(db), locker(db)
		stopFirst := running(t, first)
		synctest.Wait()
		stopSecond := running(t, second)
		time.Sleep(5 * ttl)
		require.True(t, first.Held())
		require.False(t, second.Held())
		stopFirst()
		time.Sleep(interval)
		synctest.Wait()
		require.True(t, second.Held())
		stopSecond()
	})
}

func TestRunGoesOnAfterErrorsAndPanics(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var calls atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		err := locker(db).Run(ctx, interval, func(context.Context) error {
			switch calls.Add(1) {
			case 1:
				return errors.New("no")
			case 2:
				panic("no")
			case 3:
				return nil
			}
			cancel()
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 4, calls.Load())
	})
}

func TestRunCanBeStartedAgain(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		l := locker(db)
		for range 5 {
			stop := running(t, l)
			synctest.Wait()
			require.True(t, l.Held())
			stop()
			require.False(t, l.Held())
		}
		require.EqualValues(t, 5, row(t, db).Term)
	})
}
