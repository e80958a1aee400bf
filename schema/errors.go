package schema

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"unicode"
)

var (
	// ErrConflict is a transaction that lost against another one: a serialization failure, a
	// deadlock, a busy SQLite file. Nothing of it is stored; it may be run again.
	ErrConflict = errors.New("conflict with another transaction")
	// ErrUnavailable is a database that cannot be reached, or a connection that was lost before
	// COMMIT was sent. Nothing of the transaction is stored; it may be run again.
	ErrUnavailable = errors.New("database unavailable")
	// ErrUnknownOutcome is a COMMIT whose answer never came: the transaction is stored as a whole
	// or not at all, and only a look at the tables tells.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")
	// ErrMissing is a database whose tables are missing or older than this build.
	ErrMissing = errors.New("tables are missing")
)

// DuplicateError is a row that a unique index refused.
type DuplicateError struct {
	Constraint string // the index on Postgres, the message with table and columns on SQLite
	Err        error
}

// Error tells which unique index refused the row.
func (e *DuplicateError) Error() string { return "duplicate " + e.Constraint + ": " + e.Err.Error() }

// Unwrap returns the driver's error.
func (e *DuplicateError) Unwrap() error { return e.Err }

// Unique is one of the unique indexes of norn's tables.
type Unique struct{ table, suffix, column string }

// The unique indexes that commits run into.
var (
	OneInstance = Unique{"instance", "pkey", "saga_id"}
	OneStart    = Unique{"association", "start", "value"}
	OnePublicID = Unique{"deadline", "public_id", "public_id"}
	OneEvent    = Unique{"event", "event_id", "event_id"}
)

// Refused reports whether err is the refusal of a row by this very index, and not by one of the application's
// tables that is called alike.
func (d *DB) Refused(err error, by Unique) bool {
	var dup *DuplicateError
	if !errors.As(err, &dup) {
		return false
	}
	table := *d.names.byToken()[by.table]
	index, column := strings.ToLower(table)+"_"+by.suffix, table+"."+by.column // as Postgres tells it, and SQLite
	return hasWord(dup.Constraint, index) || hasWord(dup.Constraint, column)
}

// hasWord reports whether text contains name as a whole, not as a part of a longer identifier.
func hasWord(text, name string) bool {
	part := func(r rune) bool {
		return r == '_' || r == '$' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return !part(r) }), name)
}

// Retryable reports whether a transaction that ended with err left nothing behind and may simply be
// run again: a conflict, or a connection lost before COMMIT.
func Retryable(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable)
}

func (d *DB) classify(err error) error {
	switch {
	case err == nil, Retryable(err), errors.Is(err, ErrUnknownOutcome), errors.Is(err, sql.ErrNoRows):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case connectionLost(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return d.dialect.classify(err)
}

func connectionLost(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) || closedByPgx(err)
}

// closedByPgx knows pgx's word for a connection that it gave up before; its own errors, not the server's, have the method.
func closedByPgx(err error) bool {
	var own interface{ SafeToRetry() bool }
	return errors.As(err, &own) && strings.Contains(err.Error(), "conn closed")
}

// HandlerError sorts an error that application code returned from inside t: one of the database's own
// conflicts counts as [ErrConflict], and any error on a connection that is lost as [ErrUnavailable]. All
// others come back as they are.
func (t *Tx) HandlerError(ctx context.Context, err error) error {
	if t.db.writer != nil || err == nil {
		return err // an immediate transaction on SQLite has no conflicts inside
	}
	if sorted := t.db.dialect.classify(err); errors.Is(sorted, ErrConflict) {
		return sorted
	}
	if _, probe := t.Exec(ctx, "SELECT 1"); errors.Is(probe, ErrUnavailable) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
