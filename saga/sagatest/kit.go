package sagatest

import (
	"errors"
	"fmt"
	"time"

	"github.com/norn-go/norn/saga"
)

// kit is what a test registered.
type kit struct {
	sagaType    string
	definition  *saga.Definition // of sagaType
	definitions []*saga.Definition
	services    []any
	handlers    []any // of commands
	databases   []Database
	start       time.Time
	synchronous bool
}

// register sorts registrations. All mistakes are reported together.
func register[S any](sagaType string, regs []any) (*kit, error) {
	k := &kit{sagaType: sagaType, start: epoch}
	var own []saga.Option
	var errs []error
	for i, reg := range regs {
		switch r := reg.(type) {
		case Option:
			errs = append(errs, r(k))
		case []saga.Option:
			own = append(own, r...)
		case *saga.Definition:
			errs = append(errs, k.add(i, r))
		case saga.Option:
			own = append(own, r)
		default:
			errs = append(errs, fmt.Errorf("sagatest: registration %d of %s is of type %T: want saga.Option, []saga.Option, *saga.Definition, "+
				"saga.Naming or an option of sagatest", i+1, sagaType, reg))
		}
	}
	if k.definition == nil || len(own) > 0 {
		d, err := saga.Define[S](sagaType, own...)
		errs = append(errs, err)
		k.definition, k.definitions = d, append(k.definitions, d)
	}
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
	if d.Name() == k.sagaType {
		k.definition = d
	}
	return nil
}
