package schema

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// statement is a prepared statement and when it is prepared anew.
//
// Postgres plans a prepared statement for the tables as they are: one prepared on empty tables scans them,
// and goes on to when they have grown, until they are analyzed. So a statement is prepared again after a
// second, two, four, … up to a minute, by when autovacuum sees to it.
type statement struct {
	*sql.Stmt
	age      time.Duration
	renew    time.Time // zero: never
	renewing atomic.Bool
	previous *sql.Stmt // may still be in use; closed by the next renewal
}

const oldest = time.Minute

func (s *statement) stale() bool { return !s.renew.IsZero() && time.Now().After(s.renew) }

// prepared returns the statement of a text, preparing it if there is none or if it is time to renew it. It
// wants a connection of the pool.
func (d *DB) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	last := d.statement(text)
	if last != nil && (!last.stale() || !last.renewing.CompareAndSwap(false, true)) {
		return last.Stmt, nil
	}
	stmt, err := d.PrepareContext(ctx, text)
	if err != nil {
		if last != nil {
			last.renewing.Store(false)
		}
		return nil, err
	}
	next := &statement{Stmt: stmt, age: time.Second}
	if last != nil {
		next.age, next.previous = 2*last.age, last.Stmt
	}
	if next.age <= oldest {
		next.renew = time.Now().Add(next.age)
	}
	return d.keep(text, last, next), nil
}

// keep puts next in the place of last, unless someone else was faster.
func (d *DB) keep(text string, last, next *statement) *sql.Stmt {
	d.statementsMu.Lock()
	defer d.statementsMu.Unlock()
	if now := d.statements[text]; now != last {
		d.retire(next.Stmt)
		return now.Stmt
	}
	d.statements[text] = next
	if last != nil && last.previous != nil {
		d.retire(last.previous)
	}
	return next.Stmt
}

// retire closes a statement without waiting for it: closing waits for the queries that run on the
// connections where it is prepared, and such a query may wait for a lock that the caller's transaction holds.
func (d *DB) retire(stmt *sql.Stmt) {
	d.retiring.Go(func() { _ = stmt.Close() })
}

func (d *DB) statement(text string) *statement {
	d.statementsMu.RLock()
	defer d.statementsMu.RUnlock()
	return d.statements[text]
}

// closeStatements closes them all and leaves no more to be prepared. Nothing else may run on d any more.
func (d *DB) closeStatements() {
	d.statementsMu.Lock()
	last := d.statements
	d.statements = map[string]*statement{}
	d.statementsMu.Unlock()
	d.retiring.Wait()
	for _, s := range last {
		_ = s.Close()
		if s.previous != nil {
			_ = s.previous.Close()
		}
	}
}
