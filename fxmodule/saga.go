package fxmodule

import (
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/fx"

	"github.com/norn-go/norn/saga"
)

// Saga registers a saga type under its stable name. What its handlers want by type is taken from the graph where Saga
// stands, once, at start; private values of the fx.Module around it count, but all saga types must get the same.
// Mistakes stop the start, those of all saga types together.
func Saga[S any](name string, opts ...saga.Option) fx.Option {
	d := declared{order: order.Add(1)}
	d.definition, d.err = saga.Define[S](name, opts...)
	options := []fx.Option{fx.Supply(fx.Annotated{Group: "norn.declared", Target: d})}
	if d.err == nil {
		options = append(options, fromGraph("norn.injected", injectable(d.definition), func(s services) injected {
			return injected{name, s}
		}))
	}
	return fx.Options(options...)
}

// declared is a saga type as it was registered.
type declared struct {
	order      int64
	definition *saga.Definition
	err        error
}

// injected is what the graph has of what a saga type's handlers want.
type injected struct {
	name     string
	services services
}

var engineType = reflect.TypeFor[*saga.Engine]()

// injectable leaves out the engine, which is made after its services.
func injectable(d *saga.Definition) []reflect.Type {
	return slices.DeleteFunc(d.Services(), func(t reflect.Type) bool { return t == engineType })
}

func (d declared) check() error {
	if d.err != nil {
		return d.err
	}
	if slices.Contains(d.definition.Services(), engineType) {
		return fmt.Errorf("saga: %s: a handler wants a %v: it would wait for itself; send a command, its handler may use the engine",
			d.definition.Name(), engineType)
	}
	return nil
}

// Names gives stored types their stable names, beside those that saga types name themselves.
func Names(namings ...saga.Naming) fx.Option {
	return fx.Supply(fx.Annotated{Group: "norn.names", Target: named{order.Add(1), namings}})
}

type named struct {
	order   int64
	namings []saga.Naming
}
