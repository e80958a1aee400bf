package sagatest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// kit is what a test registered.
type kit struct {
	sagaType    string
	definition  *saga.Definition // of sagaType
	definitions []*saga.Definition
	services    []any
	names       []saga.Naming
	handlers    []any // of commands
	databases   []Database
	start       time.Time
	synchronous bool
	budget      time.Duration
}

// register sorts registrations. All mistakes are reported together.
func register[S any](sagaType string, regs []any) (*kit, error) {
	k := &kit{sagaType: sagaType, start: epoch, budget: defaultBudget}
	var own []saga.Option
	var errs []error
	for i, reg := range regs {
		switch r := reg.(type) {
		case Option:
			errs = append(errs, r(k))
		case []saga.Option:
			own = append(own, r...)
		case saga.Option:
			own = append(own, r)
		case *saga.Definition:
			errs = append(errs, k.add(i, r))
		case fx.Option:
			errs = append(errs, k.addModule(r))
		default:
			errs = append(errs, fmt.Errorf("sagatest: registration %d of %s is of type %T: want saga.Option, []saga.Option, saga.Naming, "+
				"*saga.Definition, the fx.Option of fxmodule.Saga, or an option of sagatest", i+1, sagaType, reg))
		}
	}
	errs = append(errs, choose[S](k, own))
	if len(k.databases) == 0 {
		k.databases = []Database{SQLite}
	}
	return k, errors.Join(errs...)
}

func (k *kit) add(i int, d *saga.Definition) error {
	if d == nil {
		return fmt.Errorf("sagatest: registration %d of %s is a nil *saga.Definition", i+1, k.sagaType)
	}
	k.definitions = append(k.definitions, d)
	return nil
}

func (k *kit) addModule(o fx.Option) error {
	definitions, names, err := fxmodule.Definitions(o)
	k.definitions = append(k.definitions, definitions...)
	k.names = append(k.names, names...)
	return err
}

// choose finds the definition of the tested type: among those registered, or made of its own options.
func choose[S any](k *kit, own []saga.Option) error {
	i := slices.IndexFunc(k.definitions, func(d *saga.Definition) bool { return d.Name() == k.sagaType })
	if i < 0 && len(own) == 0 && len(k.definitions) > 0 {
		return fmt.Errorf("sagatest: nothing registered defines %s: there is %s", k.sagaType, k.types())
	}
	if i < 0 {
		d, err := saga.Define[S](k.sagaType, own...)
		k.definition, k.definitions = d, append(k.definitions, d)
		return err
	}
	k.definition = k.definitions[i]
	if got, want := k.definition.State(), reflect.TypeFor[S](); got != want {
		return fmt.Errorf("sagatest: %s is the saga type of %v, not of %v", k.sagaType, got, want)
	}
	if slices.ContainsFunc(own, func(o saga.Option) bool { _, naming := o.(saga.Naming); return !naming }) {
		return fmt.Errorf("sagatest: %s is defined twice: by a definition and by options of its own", k.sagaType)
	}
	for _, o := range own {
		k.names = append(k.names, o.(saga.Naming))
	}
	return nil
}

// types names the saga types that are registered.
func (k *kit) types() string {
	names := make([]string, len(k.definitions))
	for i, d := range k.definitions {
		names[i] = d.Name()
	}
	return strings.Join(names, ", ")
}

// made are the services of one node.
func (k *kit) made(db *schema.DB) []any {
	services := slices.Clone(k.services)
	for i, service := range services {
		f := reflect.ValueOf(service)
		switch t := f.Type(); {
		case t.Kind() != reflect.Func || t.NumOut() != 1:
		case t.NumIn() == 0:
			services[i] = f.Call(nil)[0].Interface()
		case t.NumIn() == 1 && t.In(0) == reflect.TypeFor[*schema.DB]():
			services[i] = f.Call([]reflect.Value{reflect.ValueOf(db)})[0].Interface()
		}
	}
	return services
}
