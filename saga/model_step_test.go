package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/saga"
)

// step is one line of a script.
type step interface {
	String() string
	run(w *world) error         // on the engine
	outcomes(m *model) []*model // what may have become of the model, which stays as it is
}

// only is the one outcome of a change.
func only(m *model, change func(*model)) []*model {
	c := m.clone()
	change(c)
	return []*model{c}
}

// handles gives an event to a node.
type handles struct {
	Node  string
	Event happening
	Fault fault
}

func (s handles) String() string { return fmt.Sprintf("%s.Handle(%s)%s", s.Node, s.Event, s.Fault) }

// run hands the event over once more if the fault came in between, after a look at what that left.
func (s handles) run(w *world) error {
	if s.Fault.At == 0 {
		return s.Event.judge(w.model, w.nodes[s.Node].handleListening(s.Event, w.model))
	}
	again := false
	err := w.on(s.Node, s.Fault, func(n *node) error {
		if again {
			if err := w.allOrNothing(s.outcomes(w.model)[0]); err != nil {
				return err
			}
		}
		again = true
		return n.handle(s.Event)
	})
	return s.Event.judge(w.model, err)
}

// judge says whether a node may have answered so.
func (h happening) judge(m *model, err error) error {
	expected := m.clone().handle(h) && h.Moves.fail()
	switch {
	case expected && !errors.Is(err, errMove):
		return fmt.Errorf("the handler's error did not come back: %w", err)
	case !expected && err != nil:
		return err
	}
	return nil
}

func (s handles) outcomes(m *model) []*model { return only(m, func(m *model) { m.handle(s.Event) }) }

// sweeps fires what is due, on one node.
type sweeps struct {
	Node  string
	Fault fault
}

func (s sweeps) String() string { return fmt.Sprintf("%s.Sweep()%s", s.Node, s.Fault) }

// run sweeps once more after a fault: what was left then is due still.
func (s sweeps) run(w *world) error {
	if s.Fault.At > 0 {
		_ = w.on(s.Node, s.Fault, func(n *node) error { return leading(n.poller.Sweep) })
	}
	return leading(w.nodes[s.Node].poller.Sweep)
}

func (s sweeps) outcomes(m *model) []*model { return only(m, (*model).sweep) }

// delivers relays the commands that are due, on one node.
type delivers struct {
	Node  string
	Fault fault
}

func (s delivers) String() string { return fmt.Sprintf("%s.Flush()%s", s.Node, s.Fault) }

func (s delivers) run(w *world) error {
	if s.Fault.At > 0 {
		_ = w.on(s.Node, s.Fault, func(n *node) error { return leading(n.relay.Flush) })
	}
	return leading(w.nodes[s.Node].relay.Flush)
}

func (s delivers) outcomes(m *model) []*model { return only(m, (*model).deliver) }

// moves the clock of all nodes, back too.
type ticks struct{ By time.Duration }

func (s ticks) String() string { return fmt.Sprintf("clock.Add(%s)", seconds(s.By)) }

func (s ticks) run(w *world) error {
	w.elapsed += s.By
	return nil
}

func (s ticks) outcomes(m *model) []*model { return only(m, func(m *model) { m.now += s.By }) }

// breaks lets a deadline's handlers, or a saga's sink, fail from now on, or no longer.
type breaks struct {
	What   string
	Broken bool
}

func (s breaks) String() string { return fmt.Sprintf("fails[%q] = %t", s.What, s.Broken) }

func (s breaks) run(w *world) error {
	w.sink.breaks(s.What, s.Broken)
	return nil
}

func (s breaks) outcomes(m *model) []*model {
	return only(m, func(m *model) { m.broken[s.What] = s.Broken })
}

// restarts makes a node anew on the same store.
type restarts struct{ Node string }

func (s restarts) String() string             { return s.Node + ".Restart()" }
func (s restarts) run(w *world) error         { return w.restart(s.Node) }
func (s restarts) outcomes(m *model) []*model { return []*model{m} }

// operates is what an operator does to one saga.
type operates struct {
	Node, Verb, Saga, Name string
}

func (s operates) String() string {
	return fmt.Sprintf("%s.%s(%q, %q)", s.Node, s.Verb, s.Saga, s.Name)
}

func (s operates) run(w *world) error {
	ctx, e := context.Background(), w.nodes[s.Node].engine
	public := deadline.DefaultPublicID(deadline.Key{Type: "story", ID: s.Saga, Name: s.Name})
	switch s.Verb {
	case "CancelDeadline":
		_, err := e.CancelDeadline(ctx, public)
		return err
	case "FireNow":
		_, err := e.FireNow(ctx, public)
		return err
	}
	var parked []saga.Parked
	for p, err := range e.Parked(ctx, saga.Query{Type: "story", ID: s.Saga}) {
		if err != nil {
			return err
		}
		parked = append(parked, p)
	}
	var errs []error
	for _, p := range parked {
		errs = append(errs, e.Retry(ctx, p))
	}
	return errors.Join(errs...)
}

func (s operates) outcomes(m *model) []*model {
	return only(m, func(m *model) {
		switch s.Verb {
		case "CancelDeadline":
			m.cancel(s.Saga, s.Name)
		case "FireNow":
			m.fireNow(s.Saga, s.Name)
		default:
			m.retry(s.Saga)
		}
	})
}

// together gives two events, each for one saga, to both nodes at once.
type together struct{ A, B happening }

func (s together) String() string { return fmt.Sprintf("go a.Handle(%s); b.Handle(%s)", s.A, s.B) }

func (s together) run(w *world) error {
	done := make(chan error, 1)
	go func() { done <- w.nodes["a"].handle(s.A) }()
	errB := w.nodes["b"].handle(s.B)
	errA := <-done
	return errors.Join(s.A.unexpected(errA), s.B.unexpected(errB))
}

// unexpected leaves of an error what the event's moves do not explain.
func (h happening) unexpected(err error) error {
	if h.Moves.fail() && errors.Is(err, errMove) {
		return nil
	}
	return err
}

func (s together) outcomes(m *model) []*model {
	return slices.Concat(
		only(m, func(m *model) { m.handle(s.A); m.handle(s.B) }),
		only(m, func(m *model) { m.handle(s.B); m.handle(s.A) }),
	)
}

// rivals sweeps on both nodes at once: each believes to hold the lease.
type rivals struct{}

func (s rivals) String() string { return "go a.Sweep(); b.Sweep() // under two leases" }

func (s rivals) run(w *world) error {
	done := make(chan error, 1)
	go func() { done <- w.nodes["a"].rival.Sweep(context.Background()) }()
	err := w.nodes["b"].rival.Sweep(context.Background())
	return errors.Join(err, <-done)
}

func (s rivals) outcomes(m *model) []*model { return only(m, (*model).sweep) }

// overtaken gives an event to node a, or lets it sweep, and another event to node b in between.
type overtaken struct {
	Event *happening // nil: a sweep
	At    int
	By    happening
}

func (s overtaken) String() string {
	call := "Sweep()"
	if s.Event != nil {
		call = fmt.Sprintf("Handle(%s)", s.Event)
	}
	return fmt.Sprintf("a.%s // before transaction %d: b.Handle(%s)", call, s.At, s.By)
}

func (s overtaken) run(w *world) error {
	var errB error
	a := w.nodes["a"]
	by := func() { errB = w.nodes["b"].handle(s.By) }
	a.overtake(s.At, by)
	var errA error
	if s.Event != nil {
		errA = s.Event.unexpected(a.handle(*s.Event))
	} else if errA = a.poller.Sweep(context.Background()); errors.Is(errA, lease.ErrHeld) {
		errA = fmt.Errorf("nobody else leads: %w", errA)
	}
	if !a.disarm() {
		by()
	}
	if s.Event == nil {
		errA = errors.Join(errA, leading(a.poller.Sweep)) // what b made due at once
	}
	return errors.Join(errA, s.By.unexpected(errB))
}

func (s overtaken) outcomes(m *model) []*model {
	if s.Event != nil {
		return together{*s.Event, s.By}.outcomes(m)
	}
	found := m.due()
	outcomes := only(m, func(m *model) { m.handle(s.By); m.sweep() })
	for i := range len(found) + 1 {
		outcomes = append(outcomes, only(m, func(m *model) {
			for j, w := range found {
				if j == i {
					m.handle(s.By)
				}
				m.fire(w)
			}
			if i == len(found) {
				m.handle(s.By)
			}
			m.sweep()
		})...)
	}
	return outcomes
}

// outpaced sweeps on node a, and on node b between a's look at the tables and one of its transactions.
type outpaced struct{ At int }

func (s outpaced) String() string {
	return fmt.Sprintf("a.Sweep() // before transaction %d: b.Sweep(), under another lease", s.At)
}

func (s outpaced) run(w *world) error {
	var errB error
	a := w.nodes["a"]
	a.overtake(s.At, func() { errB = w.nodes["b"].rival.Sweep(context.Background()) })
	errA := a.poller.Sweep(context.Background())
	a.disarm()
	return errors.Join(errA, errB)
}

func (s outpaced) outcomes(m *model) []*model { return only(m, (*model).sweep) }
