package poller

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/retry"
)

// Config says how a poller works. Fields left zero take their defaults.
type Config struct {
	// Interval is the longest sleep between sweeps, and the longest time until a node without the lease
	// tries to take it. It must be shorter than the lease's TTL. The default is 30 seconds.
	Interval time.Duration
	// BatchSize is how many due rows are read at once; twice as many at most are unfinished at a time. The
	// default is 100.
	BatchSize int
	// Retry says when a failed deadline is tried again, and when it is parked. The default is
	// retry.Default.
	Retry retry.Policy
	// DrainTimeout is how long dispatched work may go on undisturbed after Run or Sweep was told to stop;
	// then its context ends. The default is 10 seconds.
	DrainTimeout time.Duration
	// Now is the framework clock, by which deadlines are due. The default is time.Now.
	Now func() time.Time
	// Signal wakes the poller when something is due earlier than it knows. The poller also tells itself
	// through it, so no two pollers share one. The default is one of its own.
	Signal *deadline.Signal
	// Logger gets one line per state change. The default is slog.Default.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = 30 * time.Second
	}
	if c.BatchSize == 0 {
		c.BatchSize = 100
	}
	if c.Retry == (retry.Policy{}) {
		c.Retry = retry.Default
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Signal == nil {
		c.Signal = deadline.NewSignal()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) check(l *lease.Locker) (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("poller: "+format, args...)) }
	if c.Interval < 0 {
		refuse("interval must be positive, got %v", c.Interval)
	}
	if l != nil && c.Interval >= l.TTL() {
		refuse("interval %v must be shorter than the lease's ttl %v", c.Interval, l.TTL())
	}
	if c.BatchSize < 0 {
		refuse("batch size must be at least 1, got %d", c.BatchSize)
	}
	for _, err := range c.Retry.Check() {
		refuse("%w", err)
	}
	if c.DrainTimeout < 0 {
		refuse("drain timeout must be positive, got %v", c.DrainTimeout)
	}
	return errs
}
