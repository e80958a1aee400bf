package outbox

import (
	"log/slog"
	"sync"
	"time"
)

// trouble is a state that is logged when it begins and when it is over, however often it shows.
type trouble struct {
	log  *slog.Logger
	what string

	mu    sync.Mutex
	since time.Time // zero: none
	times int
}

func (t *trouble) seen(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.times++; t.times == 1 {
		t.since = time.Now()
		t.log.Warn("outbox trouble", "what", t.what, "err", err)
	}
}

func (t *trouble) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.times > 0 {
		t.log.Info("outbox trouble over", "what", t.what, "failures", t.times, "lasted", time.Since(t.since))
	}
	t.times = 0
}

// lately remembers what was told a short while ago. Its names are few: those of a program's types.
type lately struct {
	silence time.Duration

	mu   sync.Mutex
	told map[string]time.Time
}

// news reports whether name was not told within the silence, and takes it as told.
func (l *lately) news(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if at, ok := l.told[name]; ok && now.Sub(at) < l.silence {
		return false
	}
	l.told[name] = now
	return true
}

// growing is a pause that doubles each time, up to the longest.
type growing struct{ pause, first, longest time.Duration }

func (g *growing) next() time.Duration {
	g.pause = min(max(2*g.pause, g.first), g.longest)
	return g.pause
}

func (g *growing) reset() { g.pause = 0 }
