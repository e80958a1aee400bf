package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"
)

// ErrEnded is application code that ended, or tried to end, the transaction that it was lent. Its statement is not
// run, and nothing of the transaction may be kept.
var ErrEnded = errors.New("the transaction is not the handler's to end")

// errReturned is the use of a lent transaction after it was given back.
var errReturned = errors.New("schema: a handler's transaction was used after the handler returned")

// Lent is a transaction as application code gets it: to use, not to end. It is safe for concurrent use.
type Lent struct {
	sqlx.ExtContext
	tx *Tx

	mu       sync.Mutex
	marked   bool // SQLite: the savepoint was set by which a transaction is known again
	returned bool
	ended    error
}

// Lend gives out t until [Lent.Return].
func (t *Tx) Lend() *Lent { return &Lent{ExtContext: t.ExtContext, tx: t} }

// Return takes the transaction back. If it was ended meanwhile, or somebody tried to, that is [ErrEnded]: SQLite
// itself ends a transaction for ON CONFLICT ROLLBACK, RAISE(ROLLBACK) and a full disk, and what is written after that would
// be stored at once.
func (l *Lent) Return(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = true
	if l.marked && l.ended == nil {
		if _, err := l.tx.Exec(ctx, "RELEASE SAVEPOINT norn_lent"); err != nil {
			l.ended = fmt.Errorf("%w: %w", ErrEnded, err)
		}
	}
	return l.ended
}

// admit says whether a statement may run.
func (l *Lent) admit(ctx context.Context, query string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.returned {
		return errReturned
	}
	if word := transactionControl(query); word != "" {
		l.ended = fmt.Errorf("%w: it said %s", ErrEnded, word)
		return l.ended
	}
	if l.tx.db.writer == nil || l.marked {
		return nil
	}
	_, err := l.tx.Exec(ctx, "SAVEPOINT norn_lent")
	l.marked = err == nil
	return err
}

// ExecContext implements sqlx.ExecerContext.
func (l *Lent) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := l.admit(ctx, query); err != nil {
		return nil, err
	}
	return l.ExtContext.ExecContext(ctx, query, args...)
}

// QueryContext implements sqlx.QueryerContext.
func (l *Lent) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := l.admit(ctx, query); err != nil {
		return nil, err
	}
	return l.ExtContext.QueryContext(ctx, query, args...)
}

// QueryxContext implements sqlx.QueryerContext.
func (l *Lent) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	if err := l.admit(ctx, query); err != nil {
		return nil, err
	}
	return l.ExtContext.QueryxContext(ctx, query, args...)
}

// QueryRowxContext implements sqlx.QueryerContext.
func (l *Lent) QueryRowxContext(ctx context.Context, query string, args ...any) *sqlx.Row {
	if err := l.admit(ctx, query); err != nil { // a row cannot be made of an error, but of a query that is not run
		none, cancel := context.WithCancelCause(ctx)
		cancel(err)
		ctx = none
	}
	return l.ExtContext.QueryRowxContext(ctx, query, args...)
}
