package saga_test

import "fmt"

// wakes is which signals an invocation gave: to the poller, to the relay.
type wakes struct{ poller, relay bool }

func (n *node) woken() wakes { return wakes{len(n.signal.C()) > 0, len(n.outbox.C()) > 0} }

// listens runs work and returns the signals given at its end, and those that were given already at one of its statements.
func (n *node) listens(work func() error) (early, after wakes, err error) {
	for _, c := range []<-chan struct{}{n.signal.C(), n.outbox.C()} {
		select {
		case <-c:
		default:
		}
	}
	n.watch(func() {
		now := n.woken()
		early = wakes{early.poller || now.poller, early.relay || now.relay}
	})
	err = work()
	n.watch(nil)
	return early, n.woken(), err
}

// news is who has to hear of what m stores and before did not.
func (m *model) news(before *model) (w wakes) {
	for id, s := range m.sagas {
		for _, d := range s.deadlines {
			w.poller = w.poller || d.token > before.tokens
		}
		old := before.sagas[id]
		w.relay = w.relay || len(s.waiting) > 0 && (old == nil || len(s.waiting) > len(old.waiting))
	}
	return w
}

// handleListening gives the event to the node, and requires that it wakes who has to hear of it, after the commit.
func (n *node) handleListening(h happening, m *model) error {
	after := m.clone()
	after.handle(h)
	early, end, err := n.listens(func() error { return n.handle(h) })
	switch wanted := after.news(m); {
	case early != (wakes{}) && len(h.Tags) == 0: // of several sagas one may have committed
		return fmt.Errorf("woken before the commit: %+v", early)
	case end != wanted:
		return fmt.Errorf("woken: %+v, want %+v", end, wanted)
	}
	return err
}
