package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
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

func TestCrashedHolderIsFollowedWhenItsLeaseExpires(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		_, stop := holding(t, locker(db))
		require.NoError(t, stop())
		crashed := takeOver(t, db)
		var log bytes.Buffer
		second := lease.New(db, "sweep", lease.Config{TTL: ttl, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		stop2 := running(t, second)
		time.Sleep(ttl)
		require.False(t, second.Held())
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		require.True(t, second.Held())
		stop2()
		line := "level=INFO msg=\"lease is held by another process; waiting\" lease=sweep holder=usurper until=" + crashed.Expires.Format("2006-01-02T15:04:05.000Z07:00")
		require.Equal(t, 1, strings.Count(log.String(), line), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "waiting"))
		require.NotContains(t, log.String(), "trouble")
	})
}

func TestHeldLeaseNamesItsHolder(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		_, stop := holding(t, locker(db))
		other := takeOver(t, db)
		err := locker(db).Hold(t.Context(), nothing)
		require.ErrorIs(t, err, lease.ErrHeld)
		require.EqualError(t, err, "lease: take sweep: lease held by another: usurper, until "+other.Expires.Format(time.RFC3339Nano))
		_ = stop()
	})
}
