package poller

import (
	"log/slog"
	"time"
)

// trouble is what keeps passes from working: logged when it begins and when it is over.
type trouble struct {
	log      *slog.Logger
	longest  time.Duration
	failures int
	since    time.Time
}

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// failed notes a failed pass and returns the pause before the next.
func (t *trouble) failed(err error) time.Duration {
	if t.failures++; t.failures == 1 {
		t.since = time.Now()
		t.log.Warn("sweep trouble", "err", err)
	}
	pause := firstPause
	for i := 1; i < t.failures && pause < t.longest; i++ {
		pause *= 2
	}
	return min(pause, t.longest)
}

func (t *trouble) over() {
	if t.failures > 0 {
		t.log.Info("sweep trouble over", "failures", t.failures, "lasted", time.Since(t.since))
	}
	t.failures = 0
}
