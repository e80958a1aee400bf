package config

import (
	"log/slog"
	"time"
)

// Config holds norn's own settings. [Default] gives a valid one; [Source.Norn] reads one; one built by hand is checked
// by [Config.Validate].
type Config struct {
	Deadline Deadline
	Outbox   Outbox
	// Workers is how many invocations run at once in this process.
	Workers  int
	Database Database
	// Clock is ClockDatabase or ClockProcess.
	Clock    string
	Wake     Wake
	Schema   Schema
	Event    Event
	Instance Instance
	Limits   Limits
}

// The values of Config.Clock.
const (
	// ClockDatabase corrects the clock of this process by the database's.
	ClockDatabase = "database"
	// ClockProcess trusts the clock of this process alone.
	ClockProcess = "process"
)

// Deadline configures deadlines and the poller that sweeps them.
type Deadline struct {
	// Enabled is false in a process without deadlines; a saga that declares one then stops the start.
	Enabled bool
	Polling Polling
	// LeaseTTL is how long the poller's lease holds without renewal; longer than Polling.Interval.
	LeaseTTL time.Duration
	// LeaseName names the lease; empty: derived from the saga types this process knows.
	LeaseName string
	Retry     Retry
}

// Polling configures the sweep.
type Polling struct {
	// Enabled is false in a process that schedules but never sweeps and never holds the lease.
	Enabled bool
	// Interval is the longest sleep between two sweeps.
	Interval time.Duration
	// BatchSize is how many due rows are read at once.
	BatchSize int
}

// Outbox configures the delivery of commands.
type Outbox struct {
	Relay Relay
	Retry Retry
}

// Relay configures the relay of the outbox.
type Relay struct {
	// Enabled is false in a process that stores commands but never delivers them.
	Enabled bool
}

// Retry says what happens to work that fails.
type Retry struct {
	// MaxAttempts is how many failures park it; 0: it is never parked.
	MaxAttempts int
	// InitialBackoff is the wait after the first failure; it doubles with each further one, up to MaxBackoff.
	InitialBackoff time.Duration
	MaxBackoff     time.Duration
	// Jitter is the share of a wait by which it varies in both directions: at least 0, below 1.
	Jitter float64
}

// Database says which database norn opens.
type Database struct {
	// URL is sqlite://FILE or postgres://USER@HOST/NAME; empty: the application provides a database. It may hold a
	// password: log Config, which hides it, and not this field.
	URL string
	// MaxOpen is how many connections are open at most; 0: by driver.
	MaxOpen int
	// Prepare is false for poolers that cannot keep prepared statements.
	Prepare bool
}

// String is the settings without the secrets of the URL.
func (d Database) String() string {
	return slog.GroupValue(
		slog.String("url", redacted(d.URL)), slog.Int("max-open", d.MaxOpen), slog.Bool("prepare", d.Prepare),
	).String()
}

// Wake configures wake-ups across processes.
type Wake struct {
	// Listen is whether to use them where the database offers them.
	Listen bool
}

// Event configures what is kept of handled events.
type Event struct {
	// Retention is how long dedupe records are kept.
	Retention time.Duration
}

// Instance configures what is kept of ended sagas.
type Instance struct {
	// Retention is how long tombstones are kept; 0: for ever.
	Retention time.Duration
}

// Limits bound what one message may bring along.
type Limits struct {
	// Value is the longest association value or id, in bytes.
	Value int
	// Payload is the longest payload, in bytes.
	Payload int
}

// Default returns the settings that hold when nothing is configured: those of [Keys]. They are valid.
func Default() Config {
	var c Config
	for _, s := range settings() {
		s.reset(&c)
	}
	return c
}

// Effective returns every key with its value, in the order of [Keys], for the log at start. A password in
// database.url is replaced by "xxxxx", and table names are shown as they are used, with the prefix.
func (c Config) Effective() []slog.Attr {
	var attrs []slog.Attr
	for _, s := range settings() {
		attrs = append(attrs, slog.String(s.Name, s.show(c)))
	}
	return attrs
}

// LogValue makes a logged Config the group of [Config.Effective].
func (c Config) LogValue() slog.Value { return slog.GroupValue(c.Effective()...) }
