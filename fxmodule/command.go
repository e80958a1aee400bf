package fxmodule

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"go.uber.org/fx"

	"github.com/norn-go/norn/outbox"
)

// CommandHandler registers the handler of a command type: a func(context.Context, C) error, C a value type. Further
// parameters, pointers or interfaces, come from the graph where CommandHandler stands, once, at start; *saga.Engine may be
// one of them. It is called at least once for each command, outside of any transaction of norn's; the same command has
// the same outbox.DeliveryFrom(ctx).ID each time. Mistakes stop the start, all together.
func CommandHandler(handler any) fx.Option {
	h := commandHandler{order: order.Add(1), fn: reflect.ValueOf(handler)}
	h.wanted, h.err = further(h.fn)
	return fx.Options(
		fx.Supply(fx.Annotated{Group: "norn.commands", Target: h}),
		fromGraph("norn.bound", h.wanted, func(s services) bound { return bound{h, s} }),
	)
}

// commandHandler is a command handler as it was registered.
type commandHandler struct {
	order  int64
	fn     reflect.Value
	wanted []reflect.Type
	err    error
}

// bound is a command handler with what the graph has of its further parameters.
type bound struct {
	commandHandler
	services services
}

// further are the types of the parameters behind the command. A handler without any is the router's to check.
func further(fn reflect.Value) ([]reflect.Type, error) {
	if !fn.IsValid() || fn.Kind() != reflect.Func || fn.IsNil() || fn.Type().NumIn() <= 2 || fn.Type().IsVariadic() {
		return nil, nil
	}
	var wanted []reflect.Type
	var errs []error
	for i := 2; i < fn.Type().NumIn(); i++ {
		t := fn.Type().In(i)
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			errs = append(errs, fmt.Errorf("fxmodule: command handler %s: parameter %d is a %v: what comes from the graph is a pointer or an interface",
				nameOf(fn), i+1, t))
			continue
		}
		wanted = append(wanted, t)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return wanted, nil
}

// plain is the handler as a func(context.Context, C) error.
func (h commandHandler) plain(s services) any {
	if len(h.wanted) == 0 {
		if !h.fn.IsValid() {
			return nil
		}
		return h.fn.Interface()
	}
	t := h.fn.Type()
	results := make([]reflect.Type, t.NumOut())
	for i := range results {
		results[i] = t.Out(i)
	}
	rest := make([]reflect.Value, len(h.wanted))
	for i, w := range h.wanted {
		rest[i] = s[w]
	}
	plain := reflect.FuncOf([]reflect.Type{t.In(0), t.In(1)}, results, false)
	return reflect.MakeFunc(plain, func(args []reflect.Value) []reflect.Value {
		return h.fn.Call(append(args[:2:2], rest...))
	}).Interface()
}

func (b bound) missing() (errs []error) {
	for _, t := range b.wanted {
		if !b.services[t].IsValid() {
			errs = append(errs, fmt.Errorf("fxmodule: command handler %s wants a %v and nothing provides one: add it with fx.Provide or fx.Supply", nameOf(b.fn), t))
		}
	}
	return errs
}

// nameOf is a function's name with its package, as in bank.Debit.
func nameOf(fn reflect.Value) string {
	name := runtime.FuncForPC(fn.Pointer()).Name()
	return name[strings.LastIndex(name, "/")+1:]
}

// Sink registers where commands go that no handler of this process takes: a value that is an [outbox.Sink], or a
// constructor of one. Without it they are left for another node. Two Sinks stop the start.
func Sink(valueOrConstructor any) fx.Option {
	if s, ok := valueOrConstructor.(outbox.Sink); ok {
		return fx.Supply(fx.Annotated{Group: "norn.sinks", Target: sink{s}})
	}
	return constructed("sink", valueOrConstructor, "norn.sinks", func(s outbox.Sink) sink { return sink{s} })
}

type sink struct{ outbox.Sink }

// CommandInterceptor puts an [outbox.Interceptor], or what a constructor of one makes, around the delivery of every
// command. The one made first is the outermost.
func CommandInterceptor(interceptorOrConstructor any) fx.Option {
	n := order.Add(1)
	around := func(i outbox.Interceptor) commandInterceptor { return commandInterceptor{n, i} }
	if f, ok := as[outbox.Interceptor](interceptorOrConstructor); ok {
		return fx.Supply(fx.Annotated{Group: "norn.commandInterceptors", Target: around(f)})
	}
	return constructed("command interceptor", interceptorOrConstructor, "norn.commandInterceptors", around)
}

type commandInterceptor struct {
	order int64
	fn    outbox.Interceptor
}
