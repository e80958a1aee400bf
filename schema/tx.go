package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Tx is a transaction on norn's tables: one of norn's own, or one that a caller began and ends.
type Tx struct {
	sqlx.ExtContext // the transaction itself, for the application's tables
	db              *DB
	runner          runner
	missing         []string
}

// Tx runs fn in a transaction and commits it if fn returns nil; else, and on a panic, it is rolled
// back. A cancelled ctx starts no transaction and commits none, but never interrupts a COMMIT.
//
// Errors to tell apart: [ErrConflict] and [ErrUnavailable] left nothing behind and may be run again
// ([Retryable]); [ErrUnknownOutcome] must be looked up.
func (d *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	var missing []string
	defer func() { d.prepareMissing(ctx, missing) }()
	release, err := d.write(ctx)
	if err != nil {
		return err
	}
	defer release()
	inner, end, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if inner != nil {
			_ = inner.Rollback()
		}
		end()
	}()
	tx := d.own(inner)
	err = fn(d.writing(ctx), tx)
	missing = tx.missing
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	err, inner = inner.Commit(), nil
	return d.outcome(err)
}

// begin starts a transaction that no cancelled context rolls back behind our back; end is called when
// it is over. On SQLite it takes the write lock at once, so that a later write cannot fail for another
// process' commit.
func (d *DB) begin(ctx context.Context) (tx *sqlx.Tx, end func(), err error) {
	err = patiently(ctx, func() (err error) {
		tx, end, err = d.beginOnce(ctx)
		return err
	})
	return tx, end, d.classify(err)
}

func (d *DB) beginOnce(ctx context.Context) (tx *sqlx.Tx, end func(), err error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end = func() { cancel(nil) }
	outlive := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	tx, err = d.BeginTxx(life, nil)
	if !outlive() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err == nil && d.writer != nil {
		_, err = d.own(tx).Exec(ctx, takeWriteLock)
	}
	if err != nil {
		if tx != nil {
			_ = tx.Rollback()
		}
		end()
		return nil, nil, err
	}
	return tx, end, nil
}

const takeWriteLock = "DELETE FROM {deadline_lock} WHERE false"

// uninterrupted is the context for statements: on SQLite an interrupted one could end the whole
// transaction.
func (d *DB) uninterrupted(ctx context.Context) context.Context {
	if d.writer != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// outcome sorts the error of a COMMIT. Without an answer of the server nobody knows.
func (d *DB) outcome(err error) error {
	if err == nil {
		return nil
	}
	sorted := d.classify(err)
	var answered interface{ SQLState() string }
	if errors.Is(sorted, ErrUnavailable) || d.writer == nil && !errors.As(err, &answered) {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return sorted
}

// own makes a Tx of a transaction of this pool. A statement that is not prepared yet runs as text and is
// prepared after the transaction: preparing wants a second connection, which a full pool does not have.
func (d *DB) own(inner *sqlx.Tx) *Tx {
	tx := &Tx{ExtContext: inner, db: d}
	tx.runner = runner{db: d, on: inner, statement: func(ctx context.Context, text string) (*sql.Stmt, error) {
		if !d.prepare {
			return nil, nil
		}
		stmt := d.statement(text)
		if stmt == nil || stmt.stale() {
			tx.missing = append(tx.missing, text)
		}
		if stmt == nil {
			return nil, nil
		}
		return inner.StmtContext(ctx, stmt.Stmt), nil
	}}
	return tx
}

func (d *DB) prepareMissing(ctx context.Context, texts []string) {
	for _, text := range texts {
		if ctx.Err() != nil {
			return
		}
		_, _ = d.prepared(ctx, text) // the next one tries again
	}
}

// Caller makes a Tx of a transaction that the caller began on the same database and will end. On
// SQLite it must have been begun immediate, and its statements are not cancelled.
func (d *DB) Caller(ctx context.Context, inner *sql.Tx) (*Tx, error) {
	if inner == nil {
		return nil, errors.New("schema: the transaction given is nil")
	}
	tx := &Tx{ExtContext: callerTx{&sqlx.Tx{Tx: inner, Mapper: mapper}, d.DriverName()}, db: d}
	tx.runner = runner{db: d, on: inner, statement: func(context.Context, string) (*sql.Stmt, error) { return nil, nil }}
	if d.writer == nil {
		return tx, nil
	}
	if _, err := tx.Exec(ctx, takeWriteLock); err != nil {
		return nil, fmt.Errorf("schema: the transaction given does not hold the write lock: begin it immediate (_txlock=immediate): %w", err)
	}
	return tx, nil
}

// callerTx gives a transaction begun without sqlx what sqlx knows of a driver.
type callerTx struct {
	*sqlx.Tx
	driver string
}

func (t callerTx) DriverName() string         { return t.driver }
func (t callerTx) Rebind(query string) string { return sqlx.Rebind(sqlx.BindType(t.driver), query) }
func (t callerTx) BindNamed(query string, arg any) (string, []any, error) {
	return sqlx.BindNamed(sqlx.BindType(t.driver), query, arg)
}

// Get is [DB.Get] inside t.
func (t *Tx) Get(ctx context.Context, dest any, query string, args ...any) error {
	return t.runner.get(t.db.uninterrupted(ctx), dest, query, args)
}

// Select is [DB.Select] inside t.
func (t *Tx) Select(ctx context.Context, dest any, query string, args ...any) error {
	return t.runner.list(t.db.uninterrupted(ctx), dest, query, args)
}

// Exec runs one statement inside t and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return t.runner.exec(t.db.uninterrupted(ctx), query, args)
}

// Savepoint runs fn and, if it fails or panics, undoes what fn did and leaves t usable.
func (t *Tx) Savepoint(ctx context.Context, fn func() error) (err error) {
	if _, err := t.Exec(ctx, "SAVEPOINT norn"); err != nil {
		return err
	}
	done := false
	defer func() {
		clean := context.WithoutCancel(ctx)
		if !done || err != nil {
			_, undo := t.Exec(clean, "ROLLBACK TO SAVEPOINT norn")
			err = errors.Join(err, undo)
		}
		_, release := t.Exec(clean, "RELEASE SAVEPOINT norn")
		err = errors.Join(err, release)
	}()
	err, done = fn(), true
	return err
}
