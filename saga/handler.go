package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/norn-go/norn/saga/internal/property"
)

// handler is a compiled handler: the engine knows no more of it than this.
type handler struct {
	kind        handlerKind
	label       string       // the function's name, for errors
	message     reflect.Type // the event's type or the payload's, nil without payload
	by          []string
	ends, again bool
	services    []reflect.Type
	doubts      []string // properties that the event does not have
	call        func(*call) error
}

type handlerKind string

const (
	startHandler    handlerKind = "start"
	eventHandler    handlerKind = "on"
	deadlineHandler handlerKind = "deadline"
)

// call is what one attempt offers to a handler.
type call struct {
	ctx          context.Context
	state        any // *S
	message      any
	commands     Commands
	deadlines    Deadlines
	lifecycle    Lifecycle
	associations Associations
	metadata     Metadata
	firing       Firing
	tx           Tx
	service      func(reflect.Type) reflect.Value
}

// take applies the options and reports those that do not fit the kind of handler.
func (h *handler) take(opts []HandlerOption) (errs []error) {
	for _, opt := range opts {
		opt(h)
	}
	if h.again && h.kind != startHandler {
		errs = append(errs, errors.New("saga.Again belongs on a saga.Start"))
	}
	if h.kind == deadlineHandler && len(h.by) > 0 {
		errs = append(errs, errors.New("saga.By belongs on an event handler: a deadline knows its saga"))
	}
	return errs
}

// checkEvent reports what is wrong with an event handler's event and associations.
func (h *handler) checkEvent() (errs []error) {
	if h.message == nil {
		return []error{h.noEvent()}
	}
	if len(h.by) == 0 {
		errs = append(errs, errors.New("no association: add saga.By(…)"))
	}
	for _, path := range h.by {
		if err := property.Check(h.message, path); err != nil {
			errs = append(errs, fmt.Errorf("event %v: %w", h.message, err))
		}
		if err := checkName("property", path); err != nil {
			errs = append(errs, err)
		}
		if doubt := property.Doubt(h.message, path); doubt != "" {
			h.doubts = append(h.doubts, doubt)
		}
	}
	return errs
}

// noEvent is a handler without an event, which an event by pointer may be.
func (h *handler) noEvent() error {
	for _, t := range h.services {
		if t.Kind() == reflect.Pointer {
			return fmt.Errorf("no event parameter: %v is taken for a service: events come by value", t)
		}
	}
	return errors.New("no event parameter: add the event, a value, after the state")
}
