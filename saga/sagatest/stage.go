package sagatest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// stage is a node on a test's store: engine, poller and relay, of which nothing runs unless it is called.
type stage struct {
	t       testing.TB
	kit     *kit
	address string
	log     *slog.Logger

	services []any
	db       *schema.DB
	engine   *saga.Engine
	poller   *poller.Poller
	relay    *outbox.Relay // nil: no command handler
	witness  *witness

	seen    snapshot // after the last step
	act     act
	history history
	run     *run // of Crash; nil: none
	life    context.Context

	handlerErrs []error // of the step that runs: what handlers of deadlines and commands returned
}

func newStage(t testing.TB, k *kit, address string, r *run) *stage {
	t.Helper()
	s := &stage{t: t, kit: k, address: address, run: r}
	s.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	if r.disturbed() {
		s.log = slog.New(slog.DiscardHandler)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Errorf("sagatest: close: %v", err)
		}
	})
	err := s.open()
	if err == nil {
		err = schema.Migrate(s.ctx(), s.db)
	}
	if err != nil {
		t.Fatalf("sagatest: %v%s", err, s.hint())
	}
	s.seen = s.look()
	s.act.base = s.seen
	return s
}

// hint says how to mend a missing service in a test.
func (s *stage) hint() string {
	offered := saga.Services(s.services...)
	for _, d := range s.kit.definitions {
		for _, t := range d.Services() {
			if _, ok := offered(t); !ok {
				return "\nsagatest.Provide gives services to a test"
			}
		}
	}
	return ""
}

// ctx is the life of the node. It outlives the test's own context, which ends before clean-up does.
func (s *stage) ctx() context.Context { return s.life }

// begin begins another life.
func (s *stage) begin() {
	s.life = context.WithoutCancel(s.t.Context())
	if s.run != nil {
		s.life, s.run.die = context.WithCancelCause(s.life)
	}
}

// now is the framework clock.
func (s *stage) now() time.Time {
	if s.run != nil {
		return s.run.now
	}
	return time.Now()
}

// pass lets time pass until t.
func (s *stage) pass(t time.Time) {
	if s.run != nil {
		s.run.pass(t)
		return
	}
	time.Sleep(time.Until(t))
}

// backoff is the production default without its randomness, so that retries come at known times.
var backoff = retry.Policy{MaxAttempts: retry.Default.MaxAttempts, Initial: retry.Default.Initial, Max: retry.Default.Max}

// open makes a node on the store, with a pool of its own.
func (s *stage) open() (err error) {
	s.begin()
	if s.db, err = s.dial(schema.WithProcessClock(), schema.WithLogger(s.log)); err != nil {
		return err
	}
	s.services = s.kit.made(s.db)
	cfg := saga.Config{Names: s.kit.names, Service: saga.Services(s.services...), Logger: s.log}
	if s.run != nil {
		cfg.Now = s.now
	}
	s.engine, err = saga.New(s.db, cfg, s.kit.definitions...)
	if err != nil {
		return err
	}
	s.witness = newWitness(s.engine)
	s.poller, err = poller.New(deadline.NewStore(s.db), s.locker("poller"), s.witness,
		poller.Config{Retry: backoff, Now: s.engine.Now, Logger: s.log})
	if err != nil || len(s.kit.handlers) == 0 {
		return err
	}
	router, err := outbox.NewRouter(s.engine.Types(), s.kit.handlers...)
	if err != nil {
		return err
	}
	s.relay, err = outbox.NewRelay(outbox.NewStore(s.db), s.locker("relay"), outbox.Config{
		Router: router, Interceptors: []outbox.Interceptor{s.witness.deliver}, Retry: backoff, Now: s.engine.Now, Logger: s.log,
	})
	return err
}

func (s *stage) dial(opts ...schema.Option) (*schema.DB, error) {
	if s.run != nil {
		return s.run.open(s.ctx(), opts...)
	}
	return schematest.Dial(s.ctx(), s.address, opts...)
}

func (s *stage) locker(name string) *lease.Locker {
	return lease.New(s.db, "sagatest-"+name, lease.Config{Logger: s.log})
}

// close ends the node; the store stays.
func (s *stage) close() error {
	if s.engine != nil {
		s.engine.Close()
	}
	if s.db == nil {
		return nil
	}
	return errors.Join(s.db.Close(), s.db.DB.Close())
}

func (s *stage) restart() error {
	s.t.Helper()
	if err := errors.Join(s.close(), s.open()); err != nil {
		s.t.Fatalf("sagatest: restart: %v", err)
	}
	return nil
}
