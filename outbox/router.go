package outbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/norn-go/norn/retry"
)

// Types knows under which names a Go type's values are stored, and how.
type Types interface {
	// Names is the stable name of t first, then its aliases; t is never a pointer.
	Names(t reflect.Type) (names []string, err error)
	// Decode decodes data into the value that into points to.
	Decode(data []byte, into any) error
}

// Router delivers commands to handlers by their type. It does not change once it is made, and is a
// [Sink] itself.
type Router struct {
	types    Types
	handlers map[string]handler
}

type handler struct {
	command reflect.Type
	call    reflect.Value
}

// NewRouter makes a router of handlers, each a func(context.Context, C) error with a command type C
// of its own, not a pointer. All mistakes are reported together.
func NewRouter(types Types, handlers ...any) (*Router, error) {
	r := &Router{types: types, handlers: map[string]handler{}}
	var errs []error
	for _, h := range handlers {
		errs = append(errs, r.add(h))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Router) add(fn any) error {
	call := reflect.ValueOf(fn)
	if err := checkHandler(call); err != nil {
		return err
	}
	h := handler{call.Type().In(1), call}
	names, err := r.types.Names(h.command)
	if err != nil {
		return fmt.Errorf("outbox: command handler %T: %w", fn, err)
	}
	for _, name := range names {
		other, taken := r.handlers[name]
		switch {
		case taken && other.command == h.command:
			return fmt.Errorf("outbox: command handler %T: %s has another handler: a command type has one", fn, h.command)
		case taken:
			return fmt.Errorf("outbox: command handler %T: the name %q of %s is a name of %s too", fn, name, h.command, other.command)
		}
	}
	for _, name := range names {
		r.handlers[name] = h
	}
	return nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func checkHandler(call reflect.Value) error {
	if !call.IsValid() || call.Kind() != reflect.Func {
		return fmt.Errorf("outbox: command handler: want a func(context.Context, C) error, got %s", describe(call))
	}
	t := call.Type()
	wrong := t.IsVariadic() || t.NumIn() != 2 || t.NumOut() != 1 || t.In(0) != contextType || t.Out(0) != errorType
	switch {
	case wrong:
		return fmt.Errorf("outbox: command handler %s: want func(context.Context, C) error", t)
	case call.IsNil():
		return fmt.Errorf("outbox: command handler %s: is nil", t)
	case t.In(1).Kind() == reflect.Pointer, t.In(1).Kind() == reflect.Interface:
		return fmt.Errorf("outbox: command handler %s: the command must be a value type, not a pointer or an interface", t)
	}
	return nil
}

func describe(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	return v.Type().String()
}

// Types lists all names, aliases too, whose commands have a handler, sorted.
func (r *Router) Types() []string {
	names := make([]string, 0, len(r.handlers))
	for name := range r.handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *Router) handles(commandType string) bool {
	_, ok := r.handlers[commandType]
	return ok
}

// Deliver decodes c and calls its handler with a context for [DeliveryFrom]. What does not decode is
// an error marked by [retry.Permanent].
func (r *Router) Deliver(ctx context.Context, c Command) error {
	h, ok := r.handlers[c.Type]
	if !ok {
		return fmt.Errorf("outbox: no handler for command type %q", c.Type)
	}
	into := reflect.New(h.command)
	if err := r.types.Decode(c.Payload, into.Interface()); err != nil {
		return retry.Permanent(fmt.Errorf("outbox: decode %s into %s: %w", c.Type, h.command, err))
	}
	out := h.call.Call([]reflect.Value{reflect.ValueOf(withDelivery(ctx, c)), into.Elem()})
	err, _ := out[0].Interface().(error)
	return err
}
