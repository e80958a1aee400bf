package config

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Key describes one setting of norn.
type Key struct {
	// Name is the key in the file, such as saga.deadline.lease-ttl.
	Name string
	// Env is the environment variable that beats the file.
	Env string
	// Kind says which values are accepted, with their unit and limits.
	Kind string
	// Default is the documented default as one writes it in the file; empty: none.
	Default string
	// Meaning is one sentence for the reader of the documentation.
	Meaning string
}

// Keys returns every setting of norn. Defaults, environment variables, the check for unknown keys, the log of the
// effective settings and the table of docs/configuration.md all come from this list.
func Keys() []Key {
	var keys []Key
	for _, s := range settings() {
		keys = append(keys, s.Key)
	}
	return keys
}

func settings() []setting {
	list := []setting{
		define("saga.deadline.enabled", true, func(c *Config) *bool { return &c.Deadline.Enabled }, either,
			"deadline support; `false` beside a saga that declares deadlines stops the start"),
		define("saga.deadline.polling.enabled", true, func(c *Config) *bool { return &c.Deadline.Polling.Enabled }, either,
			"`false` makes a node that schedules but never sweeps or holds the lease"),
		define("saga.deadline.polling.interval", 30*time.Second, func(c *Config) *time.Duration { return &c.Deadline.Polling.Interval }, span,
			"longest sleep between sweeps, and between looks of the relay of commands"),
		define("saga.deadline.polling.batch-size", 100, func(c *Config) *int { return &c.Deadline.Polling.BatchSize }, between(1, 65536),
			"most due rows read at once, deadlines and commands alike"),
		define("saga.deadline.lease-ttl", 2*time.Minute, func(c *Config) *time.Duration { return &c.Deadline.LeaseTTL }, span,
			"how long a lease holds without renewal, that of the relay too; must be longer than `saga.deadline.polling.interval`"),
		define("saga.deadline.lease-name", "", func(c *Config) *string { return &c.Deadline.LeaseName }, leaseName,
			"name of the lease; derived when empty: a digest of the names of all saga types the node knows; nodes that share a name share a poller"),
		define("saga.deadline.schema.auto", true, func(c *Config) *bool { return &c.Schema.Auto }, either,
			"create and migrate norn's tables at start; `false`: refuse to start when they are missing"),
	}
	list = append(list, retry("saga.deadline.retry", "deadline", func(c *Config) *Retry { return &c.Deadline.Retry })...)
	list = append(list,
		define("saga.outbox.relay.enabled", true, func(c *Config) *bool { return &c.Outbox.Relay.Enabled }, either,
			"`false` makes a node that stores commands but never delivers them"))
	list = append(list, retry("saga.outbox.retry", "command", func(c *Config) *Retry { return &c.Outbox.Retry })...)
	list = append(list,
		define("saga.workers", 4*runtime.GOMAXPROCS(0), func(c *Config) *int { return &c.Workers }, between(1, 65536),
			"invocations running at once in a process").documented("4 × processors"),
		define("saga.clock", ClockDatabase, func(c *Config) *string { return &c.Clock }, oneOf(ClockDatabase, ClockProcess),
			"`database` corrects the process clock by the database's, `process` trusts the process clock alone"),
		define("saga.wake.listen", true, func(c *Config) *bool { return &c.Wake.Listen }, either,
			"wake-ups across processes where the database offers them"),
		define("saga.schema.table-prefix", "", func(c *Config) *string { return &c.Schema.TablePrefix }, plainName,
			"put before every default table name"),
	)
	for _, t := range tables {
		list = append(list, t.setting())
	}
	return append(list,
		define("saga.event.retention", 168*time.Hour, func(c *Config) *time.Duration { return &c.Event.Retention }, positive,
			"how long dedupe records of handled events are kept"),
		define("saga.instance.retention", 0, func(c *Config) *time.Duration { return &c.Instance.Retention }, notNegative,
			"how long tombstones of ended sagas are kept, `0s`: for ever; pruning one frees its id"),
		define("saga.limits.value", 1024, func(c *Config) *int { return &c.Limits.Value }, between(1, 1024),
			"longest association value or saga id, in bytes"),
		define("saga.limits.payload", 1<<20, func(c *Config) *int { return &c.Limits.Payload }, between(1, 1<<30),
			"longest payload, in bytes"),
		define("database.url", "", func(c *Config) *string { return &c.Database.URL }, databaseURL,
			"the database norn opens; when empty, the application provides one").hidden(),
		define("database.max-open", 0, func(c *Config) *int { return &c.Database.MaxOpen }, poolSize,
			"most open connections, `0`: by driver; poller and relay keep one each for their leases"),
		define("database.prepare", true, func(c *Config) *bool { return &c.Database.Prepare }, either,
			"`false` for poolers that cannot keep prepared statements"),
	)
}

func retry(prefix, what string, of func(*Config) *Retry) []setting {
	return []setting{
		define(prefix+".max-attempts", 50, func(c *Config) *int { return &of(c).MaxAttempts }, between(0, 1<<31-1),
			"failures until a "+what+" is parked, `0`: never"),
		define(prefix+".initial-backoff", 5*time.Second, func(c *Config) *time.Duration { return &of(c).InitialBackoff }, positive,
			"wait after the first failure of a "+what+"; doubles with each further one"),
		define(prefix+".max-backoff", time.Hour, func(c *Config) *time.Duration { return &of(c).MaxBackoff }, positive,
			"longest wait after a failure; not shorter than `"+prefix+".initial-backoff`"),
		define(prefix+".jitter", 0.2, func(c *Config) *float64 { return &of(c).Jitter }, fraction,
			"share by which a wait varies in both directions"),
	}
}

// setting is a Key bound to its field of Config.
type setting struct {
	Key
	secret bool
	reset  func(*Config)
	field  func(*Config) reflect.Value
	holds  func(Config) bool
	show   func(Config) string
}

func define[T any](name string, value T, field func(*Config) *T, l limit[T], meaning string) setting {
	kind := kindOf(reflect.TypeFor[T]())
	if l.says != "" {
		kind += ", " + l.says
	}
	return setting{
		Key:   Key{Name: name, Env: envName(name), Kind: kind, Default: format(value), Meaning: meaning},
		reset: func(c *Config) { *field(c) = value },
		field: func(c *Config) reflect.Value { return reflect.ValueOf(field(c)).Elem() },
		holds: func(c Config) bool { return l.holds(*field(&c)) },
		show:  func(c Config) string { return format(*field(&c)) },
	}
}

func (s setting) documented(value string) setting {
	s.Default = value
	return s
}

func (s setting) hidden() setting {
	s.secret = true
	show := s.show
	s.show = func(c Config) string { return redacted(show(c)) }
	return s
}

var envSeparators = strings.NewReplacer(".", "_", "-", "_")

func envName(key string) string { return strings.ToUpper(envSeparators.Replace(key)) }

// format writes a value as one writes it in the file.
func format(value any) string {
	switch v := value.(type) {
	case time.Duration:
		text := v.String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
