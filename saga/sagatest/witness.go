package sagatest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
)

// witness stands between poller and engine, and between relay and command handlers, and takes down what happens. It
// lets deadlines through one at a time, so that the engine's counts tell what became of each.
type witness struct {
	engine *saga.Engine
	turn   chan struct{} // one: whose turn it is; a channel, because virtual time stands still for a mutex
	only   *deadline.Key // nil: all deadlines

	mu        sync.Mutex
	fired     map[string]bool // tokens
	delivered []outbox.Command
	errs      []error
}

func newWitness(e *saga.Engine) *witness {
	return &witness{engine: e, turn: make(chan struct{}, 1), fired: map[string]bool{}}
}

// Kinds implements poller.Dispatcher.
func (w *witness) Kinds() []deadline.Kind {
	if w.only != nil {
		return []deadline.Kind{{Type: w.only.Type, Name: w.only.Name}}
	}
	return w.engine.Kinds()
}

var errOther = errors.New("sagatest: another deadline was asked for")

// Dispatch implements poller.Dispatcher.
func (w *witness) Dispatch(ctx context.Context, d deadline.Due) error {
	if w.only != nil && d.Key != *w.only {
		return retry.Uncounted(errOther)
	}
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	before := w.engine.Stats().Handled
	err := w.engine.Dispatch(ctx, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.errs = append(w.errs, err)
	case w.engine.Stats().Handled > before:
		w.fired[d.Token] = true
	}
	return err
}

var errGone = errors.New("the handler ended its goroutine")

// deliver is an outbox.Interceptor. A handler that does not return, but panics or ends its goroutine as testing.T.FailNow
// does, goes on doing so.
func (w *witness) deliver(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
	err := errGone
	defer func() {
		v := recover()
		if v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		w.handled(c, err)
		if v != nil {
			panic(v)
		}
	}()
	err = next(ctx, c)
	return err
}

func (w *witness) handled(c outbox.Command, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("command %s of %s/%s: %w", c.Type, c.SagaType, c.SagaID, err))
		return
	}
	w.delivered = append(w.delivered, c)
}

// take returns what was taken down since the last call.
func (w *witness) take() (fired map[string]bool, delivered []outbox.Command, errs []error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fired, delivered, errs = w.fired, w.delivered, w.errs
	w.fired, w.delivered, w.errs = map[string]bool{}, nil, nil
	return fired, delivered, errs
}
