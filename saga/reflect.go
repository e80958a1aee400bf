package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"unicode"
)

// This file is the only one that calls handlers by reflection. It compiles a handler once into a
// function of a call.

// argument makes one parameter of a handler from a call.
type argument func(*call) reflect.Value

var injectable = map[reflect.Type]argument{
	reflect.TypeFor[context.Context](): func(c *call) reflect.Value { return reflect.ValueOf(c.ctx) },
	reflect.TypeFor[Commands]():        func(c *call) reflect.Value { return reflect.ValueOf(c.commands) },
	reflect.TypeFor[Deadlines]():       func(c *call) reflect.Value { return reflect.ValueOf(c.deadlines) },
	reflect.TypeFor[Lifecycle]():       func(c *call) reflect.Value { return reflect.ValueOf(c.lifecycle) },
	reflect.TypeFor[Associations]():    func(c *call) reflect.Value { return reflect.ValueOf(c.associations) },
	reflect.TypeFor[Metadata]():        func(c *call) reflect.Value { return reflect.ValueOf(c.metadata) },
	reflect.TypeFor[Firing]():          func(c *call) reflect.Value { return reflect.ValueOf(c.firing) },
	reflect.TypeFor[Tx]():              func(c *call) reflect.Value { return reflect.ValueOf(c.tx) },
}

var errorType = reflect.TypeFor[error]()

// compile checks a handler against its kind and the state type. The result is usable in errors even
// when there are some.
func compile(state reflect.Type, kind handlerKind, h any, opts []HandlerOption) (*handler, []error) {
	out := &handler{kind: kind, label: label(h)}
	errs := out.take(opts)
	fn := reflect.ValueOf(h)
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return out, append(errs, fmt.Errorf("%T is no function: want a method expression such as (*%s).OnSomething", h, state.Name()))
	}
	t := fn.Type()
	if method, ok := strings.CutSuffix(out.label, "-fm"); ok {
		method = method[strings.LastIndex(method, ".")+1:]
		return out, append(errs, fmt.Errorf("a method of one value: write (*%s).%s, not %c.%s", state.Name(), method, receiver(state), method))
	}
	if t.IsVariadic() {
		errs = append(errs, errors.New("variadic parameters cannot be injected"))
	}
	byValue := t.NumIn() > 0 && t.In(0) == state
	if t.NumIn() == 0 || !byValue && t.In(0) != reflect.PointerTo(state) {
		errs = append(errs, fmt.Errorf("the first parameter must be the state, *%v", state))
		return out, errs
	}
	if byValue || receivesByValue(state, fn, out.label) {
		errs = append(errs, errors.New("the state comes by value, what the handler sets is lost: use a pointer receiver"))
	}
	args := make([]argument, t.NumIn())
	args[0] = func(c *call) reflect.Value { return reflect.ValueOf(c.state) }
	for i := 1; i < t.NumIn(); i++ {
		arg, err := out.argument(t.In(i))
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter %d, %v: %w", i, t.In(i), err))
		}
		args[i] = arg
	}
	if t.NumOut() > 1 || t.NumOut() == 1 && t.Out(0) != errorType {
		errs = append(errs, fmt.Errorf("the result is %v: want nothing or an error", results(t)))
	}
	out.call = caller(fn, args)
	return out, errs
}

// receivesByValue tells whether h is the expression (*S).M of a method that S itself declares on its values: it takes
// a pointer, and copies what it points to.
func receivesByValue(state reflect.Type, fn reflect.Value, label string) bool {
	_, method, ok := strings.Cut(label, "(*"+state.Name()+").")
	if !ok {
		return false
	}
	declared, ok := reflect.PointerTo(state).MethodByName(method)
	if !ok || declared.Func.Type() != fn.Type() {
		return false
	}
	for i := range state.NumField() {
		if f := state.Field(i); f.Anonymous {
			if _, promoted := reflect.PointerTo(f.Type).MethodByName(method); promoted {
				return false
			}
			if _, promoted := f.Type.MethodByName(method); promoted {
				return false
			}
		}
	}
	_, onValues := state.MethodByName(method)
	return onValues
}

// receiver is what one calls a value of the type in its methods.
func receiver(state reflect.Type) rune { return unicode.ToLower([]rune(state.Name() + "s")[0]) }

// argument resolves one parameter by its declared type, as the table in the package's design says.
func (h *handler) argument(t reflect.Type) (argument, error) {
	if arg, ok := injectable[t]; ok {
		if h.kind == deadlineHandler && t == reflect.TypeFor[Metadata]() {
			return nil, errors.New("a deadline has no metadata: keep what you need in the state")
		}
		if h.kind != deadlineHandler && t == reflect.TypeFor[Firing]() {
			return nil, errors.New("only a deadline handler has a saga.Firing")
		}
		return arg, nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if t == errorType || t.Kind() == reflect.Interface && t.NumMethod() == 0 {
			return nil, errors.New("this interface says nothing about what to inject")
		}
		h.services = append(h.services, t)
		return func(c *call) reflect.Value { return c.service(t) }, nil
	}
	if h.message != nil {
		return nil, fmt.Errorf("a second message beside %v: services are injected as pointers or interfaces", h.message)
	}
	h.message = t
	if err := h.checkMessage(); err != nil {
		h.message = nil
		return nil, err
	}
	return func(c *call) reflect.Value { return reflect.ValueOf(c.message) }, nil
}

// checkMessage refuses types that are no messages: services, and what cannot be stored or, as a deadline's
// payload must be, read back.
func (h *handler) checkMessage() error {
	_, taken := injectable[h.message]
	if taken || h.message.Kind() == reflect.Pointer || h.message.Kind() == reflect.Interface {
		return fmt.Errorf("a %v cannot be a message: want a value of a type of your own", h.message)
	}
	if err := storable(h.message, h.kind == deadlineHandler); err != nil {
		return fmt.Errorf("cannot be a message: %w", err)
	}
	return nil
}

func caller(fn reflect.Value, args []argument) func(*call) error {
	return func(c *call) error {
		values := make([]reflect.Value, len(args))
		for i, arg := range args {
			values[i] = arg(c)
		}
		out := fn.Call(values)
		if len(out) == 1 && !out[0].IsNil() {
			return out[0].Interface().(error)
		}
		return nil
	}
}

func results(t reflect.Type) string {
	var names []string
	for i := range t.NumOut() {
		names = append(names, t.Out(i).String())
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// label is a function's name without its import path.
func label(h any) string {
	v := reflect.ValueOf(h)
	if v.Kind() != reflect.Func || v.IsNil() {
		return fmt.Sprintf("%T", h)
	}
	name := runtime.FuncForPC(v.Pointer()).Name()
	return name[strings.LastIndex(name, "/")+1:]
}

// decoded makes a value of type t from its stored text.
func decoded(types *Types, t reflect.Type, text string) (any, error) {
	p := reflect.New(t)
	if err := types.Decode([]byte(text), p.Interface()); err != nil {
		return nil, err
	}
	return p.Elem().Interface(), nil
}
