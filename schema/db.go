package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// DB is a database with norn's tables: the pool, the dialect, the table names, the prepared
// statements and, on SQLite, the one writer slot. All parts of a process that work on one database
// share one DB. It is safe for concurrent use.
type DB struct {
	*sqlx.DB
	dialect      dialect
	names        Names
	url          string
	processClock bool
	prepare      bool
	owned        bool
	log          *slog.Logger
	templates    sync.Map              // query → *template
	statements   map[string]*statement // by SQL
	statementsMu sync.RWMutex
	retiring     sync.WaitGroup // statements being closed
	writer       chan struct{}
}

// Option changes how a [DB] is made.
type Option func(*options)

type options struct {
	names        Names
	processClock bool
	prepare      bool
	existing     bool
	maxOpen      int
	log          *slog.Logger
}

// WithNames sets the table names; the default is [Names]{}.
func WithNames(n Names) Option { return func(o *options) { o.names = n } }

// WithProcessClock makes the process clock stand for the database's clock. On SQLite it always does.
func WithProcessClock() Option { return func(o *options) { o.processClock = true } }

// WithoutPrepare keeps norn from preparing statements, for connection poolers that cannot keep them.
func WithoutPrepare() Option { return func(o *options) { o.prepare = false } }

// WithoutCreating lets [Open] refuse a SQLite file that does not exist, with [ErrMissing], instead of creating it.
func WithoutCreating() Option { return func(o *options) { o.existing = true } }

// WithMaxOpen limits the connections of a pool opened by [Open]; 0 is the driver's default: 4 on
// SQLite, 32 on Postgres. A pool needs at least 4: the lease keeps one for its heartbeat.
func WithMaxOpen(n int) Option { return func(o *options) { o.maxOpen = n } }

// WithLogger sets where the database's state changes are logged; the default is slog.Default.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// Wrap makes a DB of a pool that the application opened and goes on to own: Close leaves it open.
// The drivers may be lib/pq, mattn/go-sqlite3, jackc/pgx and modernc.org/sqlite, on all of which norn's tests run; the
// page docs/drivers.md says how each wants to be opened. A driver under a name of its own is registered with
// sqlx.BindDriver. Of the options, WithMaxOpen changes nothing here.
func Wrap(pool *sqlx.DB, opts ...Option) (*DB, error) {
	o := options{prepare: true, log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.names.Validate(); err != nil {
		return nil, err
	}
	d := &DB{DB: pool, names: o.names.resolved(), prepare: o.prepare, log: o.log, processClock: o.processClock, statements: map[string]*statement{}}
	sqlx.BindDriver("sqlite", sqlx.QUESTION) // the names of modernc.org/sqlite and pgx that sqlx does not know
	sqlx.BindDriver("pgx/v5", sqlx.DOLLAR)
	switch sqlx.BindType(pool.DriverName()) {
	case sqlx.DOLLAR:
		d.dialect = postgres{}
	case sqlx.QUESTION:
		if err := d.wantSQLite(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("schema: driver %q: neither Postgres nor SQLite; register its placeholders with sqlx.BindDriver", pool.DriverName())
	}
	return d, nil
}

// wantSQLite tells SQLite from the other databases that write placeholders as question marks.
func (d *DB) wantSQLite() error {
	var version string
	if err := d.DB.QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		return fmt.Errorf("schema: driver %q: neither Postgres nor SQLite: %w", d.DriverName(), err)
	}
	d.dialect, d.processClock = sqlite{}, true
	d.writer = make(chan struct{}, 1) // one: SQLite has one writer
	return nil
}

// Dialect is "postgres" or "sqlite".
func (d *DB) Dialect() string { return d.dialect.name() }

// Close closes the prepared statements, and the pool if norn opened it.
func (d *DB) Close() error {
	d.closeStatements()
	if d.owned {
		return d.DB.Close()
	}
	return nil
}

// Now reads the database's clock.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	if d.processClock {
		return Microseconds(time.Now()), nil
	}
	var now Time
	err := d.Get(ctx, &now, "SELECT {now}")
	return now.Time, err
}

// Get reads the first row of a statement outside of any transaction into dest, a struct or a
// scannable value; without a row it is sql.ErrNoRows.
func (d *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	return d.pooled().get(ctx, dest, query, args)
}

// Select reads all rows of a statement outside of any transaction into dest, a pointer to a slice
// of structs.
func (d *DB) Select(ctx context.Context, dest any, query string, args ...any) error {
	return d.pooled().list(ctx, dest, query, args)
}

// Exec runs one statement in a transaction of its own and returns how many rows it changed.
func (d *DB) Exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	release, err := d.write(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	err = patiently(ctx, func() (err error) {
		changed, err = d.pooled().exec(ctx, query, args)
		return err
	})
	return changed, err
}

// write takes the writer slot on SQLite. Waiting is on a channel, never in the driver.
func (d *DB) write(ctx context.Context) (release func(), err error) {
	if d.writer == nil {
		return func() {}, nil
	}
	if ctx.Value(writingKey{d}) != nil {
		return nil, errNestedWrite
	}
	enough := time.NewTimer(turn)
	defer enough.Stop()
	select {
	case d.writer <- struct{}{}:
		return func() { <-d.writer }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-enough.C:
		return nil, fmt.Errorf("schema: %w: it has had the writer's place for %v", ErrConflict, turn)
	}
}

// turn bounds the wait for SQLite's writer slot: whoever writes beside a transaction of its own, with a context that does not
// tell, would wait for ever.
const turn = 30 * time.Second

type writingKey struct{ d *DB }

var errNestedWrite = errors.New("schema: a write beside the transaction that the context is of would wait for it: write inside it")

// writing marks ctx as that of a transaction which has SQLite's writer slot.
func (d *DB) writing(ctx context.Context) context.Context {
	if d.writer == nil {
		return ctx
	}
	return context.WithValue(ctx, writingKey{d}, true)
}

func (d *DB) pooled() runner {
	return runner{db: d, on: d.DB.DB, statement: func(ctx context.Context, text string) (*sql.Stmt, error) {
		if !d.prepare {
			return nil, nil
		}
		return d.prepared(ctx, text)
	}}
}
