package saga

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/schema"
)

// invocation is one message meeting one saga. Events and deadlines differ only in where the message
// comes from; both go through attempt.
type invocation struct {
	engine *Engine
	key    Key
	def    *Definition

	event *Message // an event, or
	route *route
	start bool // it starts the saga unless that is live

	due *deadline.Due // a due deadline
}

// outcome is what an attempt stored, for the wake-ups after the commit.
type outcome struct {
	handled  bool
	earliest time.Time // of the deadlines scheduled; zero: none
	commands int
	count    func(*counts) // what to count when nothing was handled
}

// attempt runs the invocation once inside tx: load under lock, claim or look for the event id, call the
// handler with fresh buffers, flush. Nothing of it survives an error, for tx is rolled back. A panic on
// the way, such as of a type's own MarshalJSON, is an error.
func (in *invocation) attempt(ctx context.Context, tx *schema.Tx) (out outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = outcome{}, &panicError{"", r, debug.Stack()}
		}
	}()
	var pairs associations
	var eventID string
	if in.event != nil {
		eventID = in.event.ID
		if pairs, err = in.engine.pairs(in.route, *in.event); err != nil {
			return outcome{}, err
		}
	}
	row, err := in.engine.store.load(ctx, tx, in.key, eventID, pairs.all)
	if err != nil {
		return outcome{}, err
	}
	if in.due != nil {
		return in.fire(ctx, tx, row)
	}
	return in.take(ctx, tx, row, pairs)
}

// take decides what the event does to the saga as it stands now.
func (in *invocation) take(ctx context.Context, tx *schema.Tx, row *loaded, pairs associations) (outcome, error) {
	r := in.route
	switch {
	case row != nil && row.Seen:
		return outcome{count: func(c *counts) { c.duplicates.Add(1) }}, nil
	case row.live() && (in.start || row.Matched):
		if r.on == nil {
			return in.ignored(ctx, "the saga is live and has no saga.On for it")
		}
		return in.run(ctx, tx, attempt{handler: r.on, row: row, message: in.event.Payload})
	case !in.start:
		if r.start != nil || row.live() {
			return outcome{}, errRematch
		}
		return in.ignored(ctx, "the saga has ended")
	case row != nil && !r.start.again:
		return in.ignored(ctx, "the saga has ended and its start has no saga.Again")
	}
	return in.run(ctx, tx, attempt{handler: r.start, row: row, message: in.event.Payload, born: true, pairs: pairs.born})
}

func (in *invocation) ignored(ctx context.Context, why string) (outcome, error) {
	in.engine.ignore(ctx, in.key, *in.event, why)
	return outcome{}, nil
}

// fire claims the due deadline and runs its handler. A row whose saga is missing or ended goes with its
// claim; one that was cancelled, replaced or fired meanwhile is none of ours any more.
func (in *invocation) fire(ctx context.Context, tx *schema.Tx, row *loaded) (outcome, error) {
	claimed, ours, err := in.engine.deadlines.Claim(ctx, tx, *in.due)
	if err != nil {
		return outcome{}, err
	}
	if !ours {
		return outcome{count: func(c *counts) { c.stale.Add(1) }}, nil
	}
	if !row.live() {
		return outcome{count: func(c *counts) { c.orphaned.Add(1) }}, nil
	}
	h := in.def.deadlines[claimed.Name]
	if h == nil {
		return outcome{}, fmt.Errorf("no saga.OnDeadline for %q", claimed.Name)
	}
	a := attempt{handler: h, row: row}
	a.firing = Firing{Name: claimed.Name, Due: claimed.At.Time, Attempt: claimed.Attempts + 1}
	if a.message, err = in.engine.payload(h, claimed); err != nil {
		return outcome{}, Permanent(fmt.Errorf("payload: %w", err))
	}
	return in.run(ctx, tx, a)
}

// attempt is one run of one handler.
type attempt struct {
	handler *handler
	row     *loaded // nil: the saga is new
	born    bool    // a life begins: the state is zero
	pairs   []pair  // the associations it begins with
	message any
	firing  Firing
	at      time.Time // the reference time
	state   any       // *S
	buffers *buffers
}

func (in *invocation) run(ctx context.Context, tx *schema.Tx, a attempt) (outcome, error) {
	e := in.engine
	var err error
	if a.state, err = in.def.newState(e.types, a.row, a.born); err != nil {
		return outcome{}, fmt.Errorf("state: %w", err)
	}
	a.at = e.cfg.Now().UTC()
	a.firing.At = a.at
	a.buffers = newBuffers(e.cfg.Now, func(what string) {
		e.cfg.Logger.Error("saga: buffer used after its handler returned; nothing is recorded", "saga", in.key.Type, "id", in.key.ID, "what", what)
	})
	lent := tx.Lend()
	err = a.call(ctx, e, lent, in.event)
	if ended := lent.Return(ctx); ended != nil {
		return outcome{}, errors.Join(ended, err)
	}
	if err != nil {
		return outcome{}, tx.HandlerError(ctx, err)
	}
	return in.flush(ctx, tx, &a)
}

// call runs the handler; a panic is an error that has its stack.
func (a *attempt) call(ctx context.Context, e *Engine, tx Tx, event *Message) (err error) {
	defer a.buffers.seal()
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{" in " + a.handler.label, r, debug.Stack()}
		}
	}()
	c := &call{
		ctx: e.inside(ctx), state: a.state, message: a.message, firing: a.firing, tx: tx,
		commands: commandBuffer{a.buffers}, deadlines: a.buffers.deadlines,
		lifecycle: lifecycleBuffer{a.buffers}, associations: associationBuffer{a.buffers},
		service: e.service,
	}
	if event != nil {
		c.metadata = merged(nil, event.Metadata)
	}
	return a.handler.call(c)
}

// duplicate sorts the refusals of unique indexes. A saga started by someone else meanwhile is matched
// again; an event id that is on record was handled, which is success. nil: err is none of these.
func (in *invocation) duplicate(err error) *error {
	db := in.engine.db
	var result error
	switch {
	case in.event != nil && db.Refused(err, schema.OneEvent):
		in.engine.counts.duplicates.Add(1)
		return &result
	case in.event != nil && in.start && (db.Refused(err, schema.OneInstance) || db.Refused(err, schema.OneStart)):
		result = errRematch
		return &result
	}
	return nil
}
