package saga

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
)

// tries bounds how often one invocation is attempted; the pauses between add up to some seconds.
const tries = 12

// commit attempts the invocation, each time in a transaction of its own, until it commits or fails for
// good. A commit whose outcome is unknown is attempted again too: the attempt finds the event id on
// record, or the deadline's token gone, if it was stored after all (SEMANTICS 1.30).
func (e *Engine) commit(ctx context.Context, in invocation) error {
	unknown := false
	for try := 1; ; try++ {
		var out outcome
		err := e.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) (err error) {
			out, err = in.attempt(ctx, tx)
			return err
		})
		if err == nil {
			e.committed(out)
			if unknown { // an attempt before this one may have committed, and woke nobody
				e.Wake()
			}
			return nil
		}
		if duplicate := in.duplicate(err); duplicate != nil {
			return *duplicate
		}
		unknown = unknown || errors.Is(err, schema.ErrUnknownOutcome)
		if !schema.Retryable(err) && !errors.Is(err, schema.ErrUnknownOutcome) {
			return unresolved(err, unknown && ctx.Err() != nil)
		}
		e.counts.conflicts.Add(1)
		if try == tries || !pause(ctx, try) {
			return unresolved(errors.Join(err, context.Cause(ctx)), unknown)
		}
	}
}

func unresolved(err error, unknown bool) error {
	if unknown && !errors.Is(err, ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return err
}

// pause waits before the next try, longer each time and never as long as another loser; false: ctx ended.
func pause(ctx context.Context, try int) bool {
	most := min(5*time.Millisecond<<try, time.Second)
	select {
	case <-time.After(time.Millisecond + rand.N(most)):
		return true
	case <-ctx.Done():
		return false
	}
}

// committed counts, and wakes who has to hear of it; never before the commit.
func (e *Engine) committed(out outcome) {
	if out.count != nil {
		out.count(&e.counts)
	}
	if out.handled {
		e.counts.handled.Add(1)
	}
	if !out.earliest.IsZero() {
		e.cfg.Signal.Notify(out.earliest)
	}
	if out.commands > 0 {
		e.cfg.Outbox.Notify()
	}
	if out.commands > 0 || !out.earliest.IsZero() {
		e.wakeOthers()
	}
}

// Dispatch runs the handler of a due deadline on the keyed workers and returns when its invocation has
// ended. It is for the poller: nil means fired, or dropped because the deadline was cancelled, replaced or
// fired meanwhile; an error marked by retry.Uncounted says nothing about the handler. The error of a panic ends with its
// stack.
func (e *Engine) Dispatch(ctx context.Context, d deadline.Due) error {
	def := e.byType[d.Type]
	if def == nil {
		return retry.Uncounted(fmt.Errorf("saga: %s: the saga type is unknown", d.Key))
	}
	key := Key{d.Type, d.ID}
	err := e.onWorkers(ctx, key, func() error {
		return e.commit(ctx, invocation{engine: e, key: key, def: def, due: &d})
	})
	if err == nil {
		return nil
	}
	err = withStack(fmt.Errorf("saga: %s: %w", d.Key, err))
	if uncounted(ctx, err) {
		return retry.Uncounted(err)
	}
	return err
}

func uncounted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || schema.Retryable(err) || errors.Is(err, schema.ErrUnknownOutcome) || errors.Is(err, ErrClosed)
}

// Kinds are the deadlines that this engine can fire, under all names of their saga types.
func (e *Engine) Kinds() []deadline.Kind {
	var kinds []deadline.Kind
	for name, def := range e.byType {
		for _, deadlineName := range def.Deadlines() {
			kinds = append(kinds, deadline.Kind{Type: name, Name: deadlineName})
		}
	}
	return kinds
}
