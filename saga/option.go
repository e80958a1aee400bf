package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Start declares a handler for an event that starts a saga: it runs when no live saga has one of the
// event's associations. h is a method expression of *S, such as (*TransferSaga).OnRequested, or a function
// with *S as its first parameter. The id of the new saga is the value of the first [By], or else the
// event's id.
func Start(h any, opts ...HandlerOption) Option { return handlerOption(startHandler, h, opts) }

// On declares a handler for an event that moves live sagas: it runs on each saga that has one of the
// event's associations.
func On(h any, opts ...HandlerOption) Option { return handlerOption(eventHandler, h, opts) }

// OnDeadline declares the handler that runs when the saga's deadline of that name is due.
func OnDeadline(name string, h any, opts ...HandlerOption) Option {
	return optionFunc(func(d *Definition) {
		compiled, errs := compile(d.state, deadlineHandler, h, opts)
		compiled.label = shown(name) + " " + compiled.label
		d.addDeadline(name, compiled, errs)
	})
}

// Injected is what a handler declared by [OnFunc] gets.
type Injected struct {
	Commands     Commands
	Deadlines    Deadlines
	Lifecycle    Lifecycle
	Associations Associations
	Metadata     Metadata
	Tx           Tx
}

// OnFunc is [On] without reflection: the compiler checks the handler.
func OnFunc[S, E any](fn func(ctx context.Context, state *S, event E, in Injected) error, opts ...HandlerOption) Option {
	return optionFunc(func(d *Definition) {
		h := &handler{kind: eventHandler, label: label(fn), message: reflect.TypeFor[E]()}
		h.call = func(in *call) error {
			return fn(in.ctx, in.state.(*S), in.message.(E), Injected{in.commands, in.deadlines, in.lifecycle, in.associations, in.metadata, in.tx})
		}
		errs := append(h.take(opts), h.checkMessage())
		if fn == nil {
			errs = append(errs, errors.New("the function is nil"))
		}
		if d.state != reflect.TypeFor[S]() {
			errs = append(errs, fmt.Errorf("the state is a %v: want *%v", reflect.TypeFor[*S](), d.state))
		}
		d.addEvent(h, errs)
	})
}

// HandlerOption is an optional part of a handler: [By], [Ends] or [Again].
type HandlerOption func(*handler)

// By names the event's property whose value correlates it with sagas. Names are slash-separated paths;
// each segment means a map key, a JSON name or, without a JSON tag, the Go field name ignoring case. If the
// payload lacks the property, metadata of that name is read.
func By(property string) HandlerOption {
	return func(h *handler) { h.by = append(h.by, property) }
}

// Ends ends the saga after the handler succeeded, as Lifecycle.End does.
func Ends() HandlerOption { return func(h *handler) { h.ends = true } }

// Again, on a [Start], lets the event begin a new life of a saga that ended under the same id.
func Again() HandlerOption { return func(h *handler) { h.again = true } }

func handlerOption(kind handlerKind, h any, opts []HandlerOption) Option {
	return optionFunc(func(d *Definition) {
		compiled, errs := compile(d.state, kind, h, opts)
		d.addEvent(compiled, errs)
	})
}

func (d *Definition) addEvent(h *handler, errs []error) {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if h.message != nil || len(errs) == 0 {
		errs = append(errs, h.checkEvent()...)
	}
	for _, err := range errs {
		d.fail("%s %s: %w", h.kind, h.label, err)
	}
	if len(errs) > 0 {
		return
	}
	r := d.events[h.message]
	if r == nil {
		r = &route{def: d, event: h.message}
		d.events[h.message] = r
		d.order = append(d.order, r)
	}
	place := &r.on
	if h.kind == startHandler {
		place = &r.start
	}
	if *place != nil {
		d.fail("%s %s: %s handles %v already: at most one %s for an event type", h.kind, h.label, (*place).label, h.message, h.kind)
		return
	}
	*place = h
}

func (d *Definition) addDeadline(name string, h *handler, errs []error) {
	if err := checkName("deadline name", name); err != nil {
		errs = append(errs, err)
	}
	for _, err := range errs {
		d.fail("%s %s: %w", h.kind, h.label, err)
	}
	if other := d.deadlines[name]; other != nil {
		d.fail("%s %s: %s handles this deadline already: exactly one handler for a deadline", h.kind, h.label, other.label)
		return
	}
	d.deadlines[name] = h
}
