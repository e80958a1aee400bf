package fxmodule

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"
)

// services are values of the graph by the type they were asked for. What the graph does not have is missing.
type services map[reflect.Type]reflect.Value

// fromGraph puts what build makes of the graph's values of the wanted types into a group. Every value is optional to
// fx, which would report only the first one that is missing, and not who wants it.
func fromGraph[T any](group string, wanted []reflect.Type, build func(services) T) fx.Option {
	in := reflect.FuncOf([]reflect.Type{optional(wanted)}, []reflect.Type{reflect.TypeFor[T]()}, false)
	constructor := reflect.MakeFunc(in, func(args []reflect.Value) []reflect.Value {
		found := services{}
		for i, t := range wanted {
			if v := args[0].Field(i + 1); !v.IsNil() {
				found[t] = v
			}
		}
		return []reflect.Value{reflect.ValueOf(build(found))}
	})
	return fx.Provide(fx.Annotated{Group: group, Target: constructor.Interface()})
}

// optional is a struct like
//
//	struct {
//		fx.In
//		Value0 *bank.Store `optional:"true"`
//	}
func optional(types []reflect.Type) reflect.Type {
	fields := []reflect.StructField{{Name: "In", Type: reflect.TypeFor[fx.In](), Anonymous: true}}
	for i, t := range types {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Value%d", i), Type: t, Tag: `optional:"true"`})
	}
	return reflect.StructOf(fields)
}
