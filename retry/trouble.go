package retry

import (
	"log/slog"
	"sync"
	"time"
)

// Trouble is a state that is logged when it begins and when it is over, however often it shows in between. It is safe
// for concurrent use.
type Trouble struct {
	log  *slog.Logger
	name string

	mu    sync.Mutex
	since time.Time
	times int
}

// NewTrouble makes a Trouble that there is not yet. Its name is the message of the lines.
func NewTrouble(log *slog.Logger, name string) *Trouble { return &Trouble{log: log, name: name} }

// Seen notes that the trouble shows.
func (t *Trouble) Seen(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.times++; t.times == 1 {
		t.since = time.Now()
		t.log.Warn(t.name, "err", err)
	}
}

// Over notes that there is no trouble, or none any more; the line has the attributes besides.
func (t *Trouble) Over(attributes ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.times > 0 {
		t.log.Info(t.name+" over", append(attributes, "failures", t.times, "lasted", time.Since(t.since))...)
	}
	t.times = 0
}
