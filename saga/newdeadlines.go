package saga

import (
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"

	"github.com/norn-go/norn/deadline"
)

// newDeadlines makes rows of the scheduled deadlines (SEMANTICS 1.5 to 1.11).
func (in *invocation) newDeadlines(operations []deadline.Operation) (news []deadline.New, cancelled []string, err error) {
	var errs []error
	for _, op := range operations {
		if op.Cancel {
			if checkName("name", op.Name) == nil { // under no other name is anything stored
				cancelled = append(cancelled, op.Name)
			}
			continue
		}
		d, err := in.newDeadline(op)
		if err != nil {
			errs = append(errs, fmt.Errorf("deadline %q: %w", op.Name, err))
			continue
		}
		news = append(news, d)
	}
	return news, cancelled, errors.Join(errs...)
}

func (in *invocation) newDeadline(op deadline.Operation) (deadline.New, error) {
	key := deadline.Key{Type: in.key.Type, ID: in.key.ID, Name: op.Name}
	d := deadline.New{Key: key, Token: rand.Text(), PublicID: op.PublicID, Due: op.Due}
	if op.Err != nil {
		return d, op.Err
	}
	h := in.def.deadlines[op.Name]
	if h == nil {
		return d, fmt.Errorf("%s has no saga.OnDeadline for it", in.def.name)
	}
	if d.PublicID == "" {
		d.PublicID = deadline.DefaultPublicID(key)
	} else if err := in.engine.checkValue("public id", d.PublicID); err != nil {
		return d, err
	}
	if err := wantPayload(h, op); err != nil || !op.HasPayload {
		return d, err
	}
	name, text, err := in.engine.encode(op.Payload)
	d.PayloadType, d.Payload = &name, &text
	return d, err
}

// wantPayload holds the given payload against the declared one (SEMANTICS 1.8).
func wantPayload(h *handler, op deadline.Operation) error {
	given := reflect.TypeOf(op.Payload)
	for given != nil && given.Kind() == reflect.Pointer {
		given = given.Elem()
	}
	switch {
	case h.message == nil || given == h.message:
		return nil
	case !op.HasPayload:
		return fmt.Errorf("%s wants a %v: add deadline.WithPayload", h.label, h.message)
	}
	return fmt.Errorf("the payload is a %T and %s wants a %v", op.Payload, h.label, h.message)
}
