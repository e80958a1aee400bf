package sagatest

import (
	"fmt"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
)

// When hands an event to the sagas. Its error is kept for the expectations.
func (f *Fixture[S]) When(event any, opts ...saga.MessageOption) {
	f.stage.t.Helper()
	f.stage.when(described(event), func() error { return f.stage.handle(event, opts...) })
}

func (s *stage) handle(event any, opts ...saga.MessageOption) error {
	if s.run != nil {
		opts = s.run.message(opts)
	}
	if !s.kit.synchronous {
		return s.engine.Handle(s.ctx(), event, opts...)
	}
	tx, err := s.db.BeginTx(s.ctx(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.engine.HandleTx(s.ctx(), tx, event, opts...); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.engine.Wake()
	return nil
}

// WhenDeadline makes a pending deadline of the saga due, by saga.Engine.FireNow, and fires it and no other.
func (s *Scope[S]) WhenDeadline(name string) {
	s.stage.t.Helper()
	key := s.one()
	var token string
	s.stage.when(fmt.Sprintf("deadline %s of %s is due", name, key), func() error {
		return s.stage.fire(deadline.Key{Type: key.Type, ID: key.ID, Name: name}, &token)
	})
}

// fire fires the pending deadline, whose token it notes: called again, it does nothing if that one is gone.
func (s *stage) fire(key deadline.Key, token *string) error {
	d, pending := s.look().deadlines[key]
	switch {
	case *token != "" && d.Token != *token:
		return nil
	case !pending:
		return fmt.Errorf("sagatest: the deadline %s is not pending", key)
	}
	*token = d.Token
	found, err := s.engine.FireNow(s.ctx(), d.PublicID)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("sagatest: the deadline %s is parked", key)
	}
	s.witness.only = &key
	defer func() { s.witness.only = nil }()
	return s.leading(s.poller.Sweep)
}

// WhenTimePasses lets time pass. Deadlines fire in due order, each at its own due time, also those that are scheduled on
// the way and the retries of those that fail; one microsecond before nothing fires. Their handlers run one at a time. A
// duration of 0 fires what is due now, one below 0 ends the test.
func (f *Fixture[S]) WhenTimePasses(d time.Duration) {
	f.stage.t.Helper()
	until := f.stage.after(d)
	f.stage.when(fmt.Sprintf("%v pass", d), func() error {
		f.stage.t.Helper()
		return f.stage.advance(until)
	})
}

// WhenTimeAdvancesTo lets time pass until t, as [Fixture.WhenTimePasses] does. A t in the past ends the test.
func (f *Fixture[S]) WhenTimeAdvancesTo(t time.Time) {
	f.stage.t.Helper()
	f.stage.forward(t)
	f.stage.when("time advances to "+stamp(t), func() error {
		f.stage.t.Helper()
		return f.stage.advance(t)
	})
}

// WhenRestarted stops the node and starts another one on the same store: what it knows after that was stored.
func (f *Fixture[S]) WhenRestarted() {
	f.stage.t.Helper()
	f.stage.when("the node restarts", func() error {
		f.stage.t.Helper()
		return f.stage.restart()
	})
}

// WhenCommandsDelivered lets the relay deliver what waits to the handlers of [CommandHandler], in order per saga, and
// what becomes deliverable through that. A command without a handler stays and holds back the later ones of its saga, as it
// does where no node of an application has a handler; one that fails stays too, is due again after its backoff, and its
// error is kept for the expectations. Without any handler the test ends.
func (f *Fixture[S]) WhenCommandsDelivered() {
	f.stage.t.Helper()
	if f.stage.relay == nil {
		f.stage.t.Fatal("sagatest: nothing could be delivered: register a sagatest.CommandHandler")
	}
	f.stage.when("commands are delivered", func() error { return f.stage.leading(f.stage.relay.Flush) })
	for _, c := range f.stage.seen.waiting() {
		f.stage.history.goes(fmt.Sprintf("command of %s waits: %s", c.key(), c.text(true)))
	}
}
