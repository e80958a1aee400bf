package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/retry"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	p := retry.Policy{MaxAttempts: 5, Initial: time.Second, Max: 3 * time.Second}
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 3 * time.Second, 4: 3 * time.Second} {
		pause, again := p.Next(failures)
		require.True(t, again)
		require.Equal(t, want, pause)
	}
	_, again := p.Next(5)
	require.False(t, again)
}

func TestDefaultTriesForAboutTwoDays(t *testing.T) {
	p := retry.Default
	p.Jitter = 0
	var total time.Duration
	for failures := 1; ; failures++ {
		pause, again := p.Next(failures)
		if !again {
			break
		}
		total += pause
	}
	require.InDelta(t, 40, total.Hours(), 4)
}

func TestJitterStaysWithinItsPart(t *testing.T) {
	p := retry.Policy{Initial: time.Second, Max: time.Second, Jitter: 0.2}
	for range 1000 {
		pause, again := p.Next(1_000_000)
		require.True(t, again)
		require.InDelta(t, 1, pause.Seconds(), 0.2)
	}
}
