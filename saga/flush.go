package saga

import (
	"context"
	"errors"
	"fmt"

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
