package saga_test

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// deliveries is a sink that writes down what it gets, each command once however often it comes.
type deliveries struct {
	mu     sync.Mutex
	broken map[string]bool
	texts  map[string]string // by command id
	order  map[string][]string
	wrong  error
}

func newDeliveries() *deliveries {
	return &deliveries{broken: map[string]bool{}, texts: map[string]string{}, order: map[string][]string{}}
}

// Deliver writes the command down, unless its saga's sink is broken.
func (l *deliveries) Deliver(_ context.Context, c outbox.Command) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n Note
	if err := (saga.JSON{}).Unmarshal(c.Payload, &n); err != nil {
		return err
	}
	if l.broken["sink "+c.SagaID] {
		return errMove
	}
	known, again := l.texts[c.ID]
	switch {
	case again && known != n.Text:
		l.wrong = fmt.Errorf("two commands have the id %s: %s and %s", c.ID, known, n.Text)
	case !again:
		l.texts[c.ID] = n.Text
		l.order[c.SagaID] = append(l.order[c.SagaID], n.Text)
	}
	return nil
}

func (l *deliveries) breaks(what string, broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken[what] = broken
}

func (l *deliveries) isBroken(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken[what]
}

func (l *deliveries) delivered() (map[string][]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.order), l.wrong
}
