package saga

import (
	"fmt"
	"reflect"

	"github.com/norn-go/norn/deadline"
)

// newState makes a *S: the stored one, or the zero state of a life that begins.
func (d *Definition) newState(types *Types, row *loaded, born bool) (any, error) {
	state := reflect.New(d.state).Interface()
	if born || row == nil {
		return state, nil
	}
	return state, types.Decode([]byte(row.State), state)
}

func (e *Engine) service(t reflect.Type) reflect.Value { return e.services[t] }

// payload decodes what was stored with a deadline, if its handler takes it.
func (e *Engine) payload(h *handler, c deadline.Claimed) (any, error) {
	if h.message == nil {
		return nil, nil
	}
	if c.PayloadType == nil || c.Payload == nil {
		return nil, fmt.Errorf("none is stored and %s wants a %v", h.label, h.message)
	}
	names, err := e.types.Names(h.message)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == *c.PayloadType {
			return decoded(e.types, h.message, *c.Payload)
		}
	}
	return nil, fmt.Errorf("a %q is stored and %s wants a %q: if the type was renamed, name its alias with saga.Named", *c.PayloadType, h.label, names[0])
}
