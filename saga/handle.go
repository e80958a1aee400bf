package saga

import (
	"context"
	"database/sql"
	"fmt"
)

// Handle lets the event start or move its sagas, each on the keyed workers and in a transaction of its
// own, and returns when all have committed or failed. One saga failing neither stops nor undoes the
// others; the errors come joined. Handled again under the same id ([WithID]), only what failed runs.
//
// Conflicts are retried; what is returned then wraps [schema.ErrConflict]. [ErrUnknownOutcome] means that
// a commit's answer was lost and could not be looked up within ctx: handle the event again under the same id.
// After [Engine.Close] it is [ErrClosed].
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
		d := delivery{engine: e, from: e.db, parallel: true}
		d.invoke = func(in invocation) error {
			return e.onWorkers(ctx, in.key, func() error { return e.commit(ctx, in) })
		}
		return d.run(ctx, m)
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
		d := delivery{engine: e, from: own}
		d.invoke = func(in invocation) error {
			var out outcome
			err := own.Savepoint(ctx, func() (err error) { out, err = in.attempt(ctx, own); return err })
			if err == nil && out.count != nil {
				out.count(&e.counts)
			}
			if duplicate := in.duplicate(err); duplicate != nil {
				return *duplicate
			}
			return err
		}
		return d.run(ctx, m)
	})
}

func (e *Engine) ignore(ctx context.Context, key Key, m Message, why string) {
	e.counts.ignored.Add(1)
	e.cfg.Logger.DebugContext(ctx, "saga: event ignored", "saga", key.Type, "id", key.ID, "event", fmt.Sprintf("%T", m.Payload), "why", why)
}
