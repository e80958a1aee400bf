package retry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/retry"
)

func TestTroubleIsLoggedWhenItBeginsAndWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		trouble := retry.NewTrouble(slog.New(slog.NewTextHandler(&log, nil)), "sweep trouble")
		trouble.Over()
		for range 2 {
			for range 3 {
				trouble.Seen(errors.New("gone"))
				time.Sleep(time.Second)
			}
			trouble.Over("now", "well")
			trouble.Over()
		}
		require.Equal(t, 2, strings.Count(log.String(), `level=WARN msg="sweep trouble" err=gone`))
		require.Equal(t, 2, strings.Count(log.String(), `level=INFO msg="sweep trouble over" now=well failures=3 lasted=3s`))
		require.Equal(t, 4, strings.Count(log.String(), "\n"))
	})
}

func TestPausesDoubleUntilReset(t *testing.T) {
	p := retry.Pauses{First: 100, Longest: 350}
	for range 2 {
		var pauses []time.Duration
		for range 4 {
			pauses = append(pauses, p.Next())
		}
		require.Equal(t, []time.Duration{100, 200, 350, 350}, pauses)
		p.Reset()
	}
	p = retry.Pauses{First: 100, Longest: 50}
	require.EqualValues(t, 50, p.Next())
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		retry.Sleep(t.Context(), time.Minute)
		require.Equal(t, time.Minute, time.Since(begun))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		retry.Sleep(ctx, time.Hour)
		require.Equal(t, time.Minute+time.Second, time.Since(begun))
	})
}
