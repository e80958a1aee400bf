package saga

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/schema"
)

// flush writes what the handler left: state with its version check, event record, deadlines, commands,
// associations. All mistakes of the buffers are reported together, before anything is written.
func (in *invocation) flush(ctx context.Context, tx *schema.Tx, a *attempt) (outcome, error) {
	operations := a.buffers.seal()
	ended := a.buffers.ended || a.handler.ends
	c, stateErr := in.change(a, ended)
	news, cancelled, deadlineErr := in.newDeadlines(operations)
	commands, commandErr := in.newCommands(a)
	added, removed, associationErr := in.changedPairs(a)
	if err := errors.Join(stateErr, deadlineErr, commandErr, associationErr); err != nil {
		return outcome{}, err
	}
	var b schema.Batch
	saved := in.engine.store.save(&b, c)
	if in.event != nil {
		in.engine.store.record(&b, in.key, in.event.ID, a.at)
	}
	out := outcome{handled: true, commands: len(commands)}
	if ended {
		news = nil
		in.engine.deadlines.RemoveAll(&b, in.key.Type, in.key.ID)
	} else {
		in.engine.deadlines.Remove(&b, in.key.Type, in.key.ID, cancelled)
		in.engine.deadlines.Put(&b, news)
	}
	in.engine.commands.Put(&b, commands)
	in.flushPairs(&b, a, ended, added, removed)
	changed, err := tx.Run(ctx, &b)
	if in.engine.db.Refused(err, schema.OnePublicID) {
		err = fmt.Errorf("a public id is held by another pending deadline: %w", err)
	}
	if err != nil {
		return outcome{}, fmt.Errorf("store: %w", err)
	}
	if changed[saved] != 1 {
		return outcome{}, fmt.Errorf("store: version %d is gone: %w", c.version, schema.ErrConflict)
	}
	for _, d := range news {
		if out.earliest.IsZero() || d.Due.Before(out.earliest) {
			out.earliest = d.Due
		}
	}
	return out, nil
}

func (in *invocation) change(a *attempt, ended bool) (change, error) {
	c := change{key: in.key, again: a.row != nil && a.born, ended: ended, at: a.at}
	text, err := in.engine.types.encodeState(a.state)
	if err != nil {
		return c, fmt.Errorf("state %v: %w", in.def.state, err)
	}
	c.state = text
	if a.row != nil {
		c.version, c.same = a.row.Version, a.row.State == text
	}
	return c, nil
}

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

// newCommands makes rows of the sent commands. Their ids follow from saga, message and position, so a
// retried attempt makes the same ones (SEMANTICS 1.18).
func (in *invocation) newCommands(a *attempt) ([]outbox.New, error) {
	var message string
	if in.event != nil {
		message = "event:" + in.event.ID
	} else {
		message = "deadline:" + in.due.Token
	}
	var news []outbox.New
	var errs []error
	for i, c := range a.buffers.commands {
		name, text, err := in.engine.encode(c.value)
		if err == nil {
			err = checkMetadata(c.metadata)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("command %d, %T: %w", i+1, c.value, err))
			continue
		}
		news = append(news, outbox.New{
			ID: commandID(in.key, message, i), SagaType: in.key.Type, SagaID: in.key.ID,
			Type: name, Payload: text, Metadata: c.metadata, Created: a.at,
		})
	}
	return news, errors.Join(errs...)
}

func commandID(key Key, message string, position int) string {
	h := sha256.New()
	for _, part := range []string{key.Type, key.ID, message} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	fmt.Fprintf(h, "#%d", position)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func checkMetadata(m Metadata) error {
	for key, value := range m {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata %q is not UTF-8", key)
		}
		if strings.HasPrefix(key, "$") {
			return fmt.Errorf("metadata %q: keys beginning with $ are reserved", key)
		}
	}
	return nil
}

func (e *Engine) encode(v any) (name, text string, err error) {
	name, text, err = e.types.Encode(v)
	if err == nil && len(text) > e.cfg.PayloadLimit {
		err = fmt.Errorf("%s of %d bytes is longer than %d", name, len(text), e.cfg.PayloadLimit)
	}
	return name, text, err
}

func (in *invocation) changedPairs(a *attempt) (added, removed []pair, err error) {
	var errs []error
	for _, p := range a.buffers.order {
		err := in.engine.checkPair(p)
		switch {
		case a.buffers.associations[p] && err != nil:
			errs = append(errs, fmt.Errorf("association %q: %w", p.property, err))
		case a.buffers.associations[p]:
			added = append(added, p)
		case err == nil: // what cannot be stored is not there to be removed
			removed = append(removed, p)
		}
	}
	return added, removed, errors.Join(errs...)
}

func (e *Engine) checkPair(p pair) error {
	if err := checkName("property", p.property); err != nil {
		return err
	}
	if p.value == "" {
		return errors.New("the value is empty")
	}
	return e.checkValue("value", p.value)
}

func (in *invocation) flushPairs(b *schema.Batch, a *attempt, ended bool, added, removed []pair) {
	var exclusive *pair
	if a.born {
		exclusive = &a.pairs[0]
	}
	switch {
	case ended && a.born:
		in.engine.store.dissociateAllBut(b, in.key, a.pairs[:1])
		in.engine.store.associate(b, in.key, a.pairs[:1], exclusive, true)
	case ended:
		in.engine.store.dissociateEnded(b, in.key)
	case a.born:
		own := distinct(append(without(a.pairs, removed), added...))
		if a.row != nil {
			in.engine.store.dissociateAllBut(b, in.key, own)
		}
		in.engine.store.associate(b, in.key, own, exclusive, false)
	default:
		in.engine.store.dissociate(b, in.key, removed)
		in.engine.store.associate(b, in.key, added, nil, false)
	}
}
