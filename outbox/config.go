package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/norn-go/norn/retry"
)

// Config says what a [Relay] delivers, and how. The zero value of each field but Router and Sink is
// its default.
type Config struct {
	Router       *Router       // gets the commands whose types it knows; nil: knows none
	Sink         Sink          // gets all others; nil: they are left for another node
	SagaTypes    []string      // deliver only what sagas of these types sent, aliases included; nil: of all types
	Interceptors []Interceptor // around each delivery, the first outermost

	Retry        retry.Policy  // default retry.Default
	Interval     time.Duration // longest pause between two looks at the table; default 30s
	BatchSize    int           // sagas read at once, and commands of one saga in a row; default 100
	Workers      int           // sagas delivered in parallel; default 16
	DrainTimeout time.Duration // how long running deliveries keep their context after a stop; default 10s

	Now    func() time.Time // the framework clock; default time.Now
	Signal *Signal          // told of committed commands; default: one nobody tells
	Logger *slog.Logger     // default slog.Default
}

func (c Config) withDefaults() Config {
	if c.Retry == (retry.Policy{}) {
		c.Retry = retry.Default
	}
	orDefault(&c.Interval, 30*time.Second)
	orDefault(&c.BatchSize, 100)
	orDefault(&c.Workers, 16)
	orDefault(&c.DrainTimeout, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Signal == nil {
		c.Signal = NewSignal()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("outbox: "+format, args...))
		}
	}
	check(c.Router != nil || c.Sink != nil, "neither a router nor a sink: nothing could be delivered")
	check(c.Interval > 0, "interval must be positive, got %v", c.Interval)
	check(c.BatchSize > 0, "batch size must be positive, got %d", c.BatchSize)
	check(c.Workers > 0, "workers must be positive, got %d", c.Workers)
	check(c.DrainTimeout > 0, "drain timeout must be positive, got %v", c.DrainTimeout)
	for _, err := range c.Retry.Check() {
		check(false, "%w", err)
	}
	return errors.Join(errs...)
}

func (c Config) scope() scope {
	s := scope{anyType: c.Sink != nil, sagaTypes: c.SagaTypes}
	if c.Router != nil {
		s.types = c.Router.Types()
	}
	return s
}
