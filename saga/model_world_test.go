package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
)

// world is two nodes on one database, and the model of what is stored there.
type world struct {
	place      place
	definition *saga.Definition
	elapsed    time.Duration // since the beginning
	script     *script
	sink       *deliveries
	nodes      map[string]*node
	eye        *node // reads, and is never cut
	model      *model
}

// play runs the script on the tables of a place, which it empties. Its error tells how far it came, as a script.
func play(at place, definition *saga.Definition, steps []step) (err error) {
	w := &world{place: at, definition: definition, sink: newDeliveries(), model: newModel(), eye: &node{}}
	w.nodes = map[string]*node{"a": {}, "b": {}}
	w.script = &script{acts: map[string]Act{}}
	for _, name := range deadlineNames {
		w.script.on(name, w.deadlineActs(name))
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(); err != nil {
		return err
	}
	for i, s := range steps {
		if err := w.step(s); err != nil {
			var b strings.Builder
			for _, s := range steps[:i+1] {
				fmt.Fprintf(&b, "\t%s\n", s)
			}
			return fmt.Errorf("the script\n\n%s\nends otherwise than its model: %w", b.String(), err)
		}
	}
	return nil
}

func (w *world) open() (err error) {
	w.eye.knife = newKnife()
	if w.eye.pool, w.eye.db, err = w.place.open(w.eye.knife); err != nil {
		return err
	}
	for _, table := range []string{"{instance}", "{association}", "{deadline}", "{deadline_lock}", "{command}", "{event}"} {
		if _, err := w.eye.db.Exec(context.Background(), "DELETE FROM "+table); err != nil {
			return err
		}
	}
	for name, n := range w.nodes {
		if err := n.open(w, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() error {
	errs := []error{}
	for _, n := range w.nodes {
		errs = append(errs, n.close())
	}
	return errors.Join(append(errs, w.eye.close())...)
}

// restart makes a node anew on the same store.
func (w *world) restart(name string) error {
	if err := w.nodes[name].close(); err != nil {
		return err
	}
	time.Sleep(whileDead)
	w.nodes[name] = &node{}
	return w.nodes[name].open(w, name)
}

// step runs s, and takes the model on to what became of it.
func (w *world) step(s step) error {
	if err := s.run(w); err != nil {
		return err
	}
	got, err := look(context.Background(), w.eye.db, w.sink)
	if err != nil {
		return err
	}
	outcomes := s.outcomes(w.model)
	for _, m := range outcomes {
		if slices.Equal(m.view(), got) {
			w.model = m
			return nil
		}
	}
	return fmt.Errorf("what is stored (of %d allowed outcomes the first is compared):\n%s", len(outcomes), differ(outcomes[0].view(), got))
}

// allOrNothing requires that each saga is stored as it was, or as it is to be.
func (w *world) allOrNothing(after *model) error {
	got, err := look(context.Background(), w.eye.db, w.sink)
	if err != nil {
		return err
	}
	old, next := w.model.view(), after.view()
	for _, id := range sagaIDs {
		stored := got.of(id)
		if !slices.Equal(stored, old.of(id)) && !slices.Equal(stored, next.of(id)) {
			return fmt.Errorf("after the fault saga %s is neither as before nor as it is to be:\n%s", id, differ(old.of(id), stored))
		}
	}
	return nil
}

// clock is the framework clock of all nodes.
func (w *world) clock() time.Time { return beginning.Add(w.elapsed) }

// on runs work on a node under a fault. If it did not come through, it is run again: on the node made anew
// if the fault killed it.
func (w *world) on(name string, f fault, work func(*node) error) error {
	n := w.nodes[name]
	n.arm(f)
	err := work(n)
	if hit := n.disarm(); !hit {
		return err
	}
	if f.Die {
		if err := w.restart(name); err != nil {
			return err
		}
		n = w.nodes[name]
	}
	if err == nil || errors.Is(err, errMove) {
		return err
	}
	return work(n)
}

var sagaIDs = []string{"1", "2"}

var deadlineNames = []string{"t", "u", "v", "parcel"}

// deadlineActs is what the handlers of deadlines do: send, and "u" repeats; "v" ends by its declaration.
func (w *world) deadlineActs(name string) Act {
	return func(sc Scene) error {
		if w.sink.isBroken(name) {
			return errMove
		}
		sc.Send(Note{fired(name, sc.Count, sc.Parcel.Text)})
		if name == "u" {
			sc.Schedule("u", repeat, deadline.WithPayload(Parcel{Text: "u"}))
		}
		return nil
	}
}
