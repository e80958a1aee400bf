package saga

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/norn-go/norn/schema"
)

// errRematch is a saga that is no longer what it was when it was matched: match again.
var errRematch = errors.New("the saga changed since it was matched")

// rematches bounds how often one event is matched anew.
const rematches = 10

// Handle lets the event start or move its sagas, each on the keyed workers and in a transaction of its
// own, and returns when all have committed or failed. One saga failing neither stops nor undoes the
// others; the errors come joined. Handled again under the same id ([WithID]), only what failed runs.
//
// Conflicts are retried; what is returned then wraps [schema.ErrConflict]. [ErrUnknownOutcome] means that
// a commit's answer was lost and could not be looked up within ctx: handle the event again under the same id.
// An event that concerns no saga is no error.
func (e *Engine) Handle(ctx context.Context, event any, opts ...MessageOption) error {
	if err := e.refuseNested(ctx); err != nil {
		return err
	}
	m, err := e.message(event, opts)
	if err != nil {
		return err
	}
	return e.intercept(ctx, m, func(ctx context.Context, m Message) error {
		return e.deliver(ctx, m, e.db, func(t target, r *route, m Message) error {
			return e.workers.Do(ctx, t.key, func() error {
				return e.commit(ctx, invocation{engine: e, key: t.key, def: r.def, event: &m, route: r, start: t.start})
			})
		})
	})
}

// HandleTx is [Engine.Handle] inside the caller's transaction, on the caller's goroutine: what the event
// does to its sagas commits with tx. Each saga has a savepoint in place of a transaction. Conflicts are not
// retried but returned; on Postgres tx is then of no more use. On SQLite tx must have been begun immediate.
// Call [Engine.Wake] after the commit, or what was scheduled is seen only within the polling interval.
func (e *Engine) HandleTx(ctx context.Context, tx *sql.Tx, event any, opts ...MessageOption) error {
	if err := e.refuseNested(ctx); err != nil {
		return err
	}
	m, err := e.message(event, opts)
	if err != nil {
		return err
	}
	if e.db.Dialect() == "sqlite" {
		ctx = context.WithoutCancel(ctx) // an interrupted statement would end the caller's transaction
	}
	own, err := e.db.Caller(ctx, tx)
	if err != nil {
		return err
	}
	return e.intercept(ctx, m, func(ctx context.Context, m Message) error {
		return e.deliver(ctx, m, own, func(t target, r *route, m Message) error {
			inv := invocation{engine: e, key: t.key, def: r.def, event: &m, route: r, start: t.start}
			var out outcome
			err := own.Savepoint(ctx, func() (err error) { out, err = inv.attempt(ctx, own); return err })
			if err == nil && out.count != nil {
				out.count(&e.counts)
			}
			if duplicate := inv.duplicate(err); duplicate != nil {
				return *duplicate
			}
			return err
		})
	})
}

// deliver matches the event and invokes each saga once, matching again those routes whose sagas
// changed meanwhile.
func (e *Engine) deliver(ctx context.Context, m Message, q querier, invoke func(target, *route, Message) error) error {
	m, err := e.checked(m) // an interceptor may have changed it
	if err != nil {
		return err
	}
	routes := e.routes[reflect.TypeOf(m.Payload)]
	if len(routes) == 0 {
		e.ignore(ctx, Key{}, m, "no handler takes the event")
		return nil
	}
	done := map[Key]bool{}
	var errs []error
	for range rematches {
		targets, err := e.match(ctx, q, m, routes)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		changed, failed := e.invokeAll(ctx, m, routes, targets, done, q == querier(e.db), invoke)
		errs = append(errs, failed...)
		if routes = changed; len(routes) == 0 {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, fmt.Errorf("saga: handle %T: %w: %w", m.Payload, schema.ErrConflict, errRematch))...)
}

// invokeAll invokes the targets, in parallel where each has its own transaction, else in the order of
// (type, id). It returns the routes to match again.
func (e *Engine) invokeAll(ctx context.Context, m Message, routes []*route, targets map[*route][]target, done map[Key]bool,
	parallel bool, invoke func(target, *route, Message) error) (changed []*route, errs []error) {
	var jobs []job
	for _, r := range routes {
		if len(targets[r]) == 0 {
			e.ignore(ctx, Key{Type: r.def.name}, m, "no saga has its association")
		}
		for _, t := range targets[r] {
			if !done[t.key] {
				jobs = append(jobs, job{target: t, route: r})
			}
		}
	}
	runJobs(jobs, parallel, func(j *job) { j.err = invoke(j.target, j.route, m) })
	again := map[*route]bool{}
	for _, j := range jobs {
		if errors.Is(j.err, errRematch) {
			again[j.route] = true
			continue
		}
		done[j.target.key] = true
		if j.err != nil {
			errs = append(errs, fmt.Errorf("saga: handle %T: %s: %w", m.Payload, j.target.key, j.err))
		}
	}
	for _, r := range routes {
		if again[r] {
			changed = append(changed, r)
		}
	}
	return changed, errs
}

func (e *Engine) ignore(ctx context.Context, key Key, m Message, why string) {
	e.counts.ignored.Add(1)
	e.cfg.Logger.DebugContext(ctx, "saga: event ignored", "saga", key.Type, "id", key.ID, "event", fmt.Sprintf("%T", m.Payload), "why", why)
}
