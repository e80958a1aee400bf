package outbox

import (
	"sync"
	"time"
)

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
