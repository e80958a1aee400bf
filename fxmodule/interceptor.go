package fxmodule

import (
	"fmt"
	"reflect"

	"go.uber.org/fx"

	"github.com/norn-go/norn/saga"
)

// Interceptor puts a [saga.Interceptor], or what a constructor of one makes, around the handling of every event. The one
// made first is the outermost. Deadlines pass none.
func Interceptor(interceptorOrConstructor any) fx.Option {
	n := order.Add(1)
	around := func(i saga.Interceptor) interceptor { return interceptor{n, i} }
	if f, ok := as[saga.Interceptor](interceptorOrConstructor); ok {
		return fx.Supply(fx.Annotated{Group: "norn.interceptors", Target: around(f)})
	}
	return constructed("interceptor", interceptorOrConstructor, "norn.interceptors", around)
}

type interceptor struct {
	order int64
	fn    saga.Interceptor
}

// as converts v to the function type F if it has its signature.
func as[F any](v any) (f F, ok bool) {
	value, t := reflect.ValueOf(v), reflect.TypeFor[F]()
	if !value.IsValid() || !value.CanConvert(t) {
		return f, false
	}
	return value.Convert(t).Interface().(F), true
}

// constructed puts what wrap makes of the constructor's result into a group.
func constructed[T, G any](what string, constructor any, group string, wrap func(T) G) fx.Option {
	made := reflect.TypeFor[T]()
	t := reflect.TypeOf(constructor)
	if t == nil || t.Kind() != reflect.Func || t.NumOut() == 0 || !satisfies(t.Out(0), made) {
		return fx.Error(fmt.Errorf("fxmodule: %s: want %v, or a constructor of one, got %T", what, made, constructor))
	}
	name := fmt.Sprintf(`name:"norn.%d"`, order.Add(1))
	results := []fx.Annotation{fx.ResultTags(name)}
	if made.Kind() == reflect.Interface {
		results = append(results, fx.As(new(T)))
	}
	return fx.Provide(
		fx.Annotate(constructor, results...),
		fx.Annotate(wrap, fx.ParamTags(name), fx.ResultTags(fmt.Sprintf("group:%q", group))),
	)
}

// satisfies reports whether a t can stand where a wanted is asked for.
func satisfies(t, wanted reflect.Type) bool {
	return t == wanted || wanted.Kind() == reflect.Interface && t.Implements(wanted)
}
