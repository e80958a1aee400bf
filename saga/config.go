package saga

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/schema"
)

// Config is what an [Engine] needs besides its database and definitions. The zero value works.
type Config struct {
	Workers           int                            // invocations at once; default 4 × processors
	Codec             Codec                          // default [JSON]
	Names             []Naming                       // names of stored types
	Service           func(reflect.Type) (any, bool) // what handlers inject by type; see [Services]
	Interceptors      []Interceptor                  // outermost first
	Signal            *deadline.Signal               // told of committed due times; shared with the poller
	Outbox            *outbox.Signal                 // told of committed commands; shared with the relay
	Clock             *schema.Clock                  // the framework clock; default a new one
	Now               func() time.Time               // replaces the clock, for replay and simulation
	MeasureEvery      time.Duration                  // how often the clock is measured; default 40s
	EventRetention    time.Duration                  // how long handled event ids are known; default 168h
	InstanceRetention time.Duration                  // how long tombstones are kept; 0: for ever
	ValueLimit        int                            // bytes of an id or association value; default and at most 1 KiB
	PayloadLimit      int                            // bytes of a stored payload; default 1 MiB
	Listen            bool                           // wake-ups across processes, where the database can
	Logger            *slog.Logger                   // default slog.Default()
}

func (c Config) withDefaults(db *schema.DB) Config {
	if c.Workers == 0 {
		c.Workers = 4 * runtime.GOMAXPROCS(0)
	}
	if c.Codec == nil {
		c.Codec = JSON{}
	}
	if c.Service == nil {
		c.Service = Services()
	}
	if c.Signal == nil {
		c.Signal = deadline.NewSignal()
	}
	if c.Outbox == nil {
		c.Outbox = outbox.NewSignal()
	}
	if c.Clock == nil {
		c.Clock = schema.NewClock(db)
	}
	if c.Now == nil {
		c.Now = c.Clock.Now
	}
	if c.MeasureEvery == 0 {
		c.MeasureEvery = 40 * time.Second
	}
	if c.EventRetention == 0 {
		c.EventRetention = 168 * time.Hour
	}
	if c.ValueLimit == 0 {
		c.ValueLimit = 1 << 10
	}
	if c.PayloadLimit == 0 {
		c.PayloadLimit = 1 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	positive := func(name string, ok bool, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("saga: config: %s must be positive, got %v", name, got))
		}
	}
	positive("Workers", c.Workers > 0, c.Workers)
	positive("MeasureEvery", c.MeasureEvery > 0, c.MeasureEvery)
	positive("EventRetention", c.EventRetention > 0, c.EventRetention)
	positive("PayloadLimit", c.PayloadLimit > 0, c.PayloadLimit)
	if c.InstanceRetention < 0 {
		errs = append(errs, fmt.Errorf("saga: config: InstanceRetention must not be negative, got %v", c.InstanceRetention))
	}
	if c.ValueLimit < 1 || c.ValueLimit > 1<<10 {
		errs = append(errs, fmt.Errorf("saga: config: ValueLimit must be 1 to 1024 bytes, got %d", c.ValueLimit))
	}
	return errors.Join(errs...)
}

// Services offers values to the handlers that declare their types: the one of exactly the type, else the
// first that implements the interface.
func Services(values ...any) func(reflect.Type) (any, bool) {
	return func(t reflect.Type) (any, bool) {
		for _, v := range values {
			if reflect.TypeOf(v) == t {
				return v, true
			}
		}
		for _, v := range values {
			if t.Kind() == reflect.Interface && v != nil && reflect.TypeOf(v).Implements(t) {
				return v, true
			}
		}
		return nil, false
	}
}
