package schema

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// Open opens the database of a URL: sqlite://FILE (sqlite:///absolute or sqlite://relative) or
// postgres://USER@HOST/NAME?…. It connects once, so that a wrong URL shows at start. An error never
// contains the password.
//
// SQLite opens in WAL mode with full synchronisation, immediate transactions and a busy timeout of five
// seconds, Postgres with a connect timeout of ten; parameters of the driver in the URL (_busy_timeout,
// _synchronous, connect_timeout, …) win. A database in memory is refused: each of its connections would be
// another database.
func Open(ctx context.Context, address string, opts ...Option) (*DB, error) {
	o := options{prepare: true}
	for _, opt := range opts {
		opt(&o)
	}
	driver, dsn, err := source(address, o)
	if err != nil {
		return nil, err
	}
	pool, err := sqlx.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("schema: open %s: %w", Redacted(address), err)
	}
	limitPool(pool, driver, o.maxOpen)
	if err := patiently(ctx, func() error { return pool.PingContext(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("schema: open %s: %w", Redacted(address), err), pool.Close())
	}
	d, err := Wrap(pool, opts...)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	d.owned, d.url = true, address
	return d, nil
}

func limitPool(pool *sqlx.DB, driver string, maxOpen int) {
	if maxOpen == 0 {
		maxOpen = map[string]int{"sqlite3": 4, "postgres": 32}[driver]
	}
	pool.SetMaxOpenConns(maxOpen)
	pool.SetMaxIdleConns(maxOpen)
	if driver == "postgres" {
		pool.SetConnMaxIdleTime(5 * time.Minute)
	}
}

// source turns an address into a driver and what the driver wants to hear.
func source(address string, o options) (driver, dsn string, err error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "", "", fmt.Errorf("schema: database url %q: want sqlite://FILE or postgres://USER@HOST/NAME", Redacted(address))
	}
	switch scheme {
	case "sqlite":
		dsn, err := sqliteSource(rest, o.existing)
		return "sqlite3", dsn, err
	case "postgres", "postgresql":
		dsn, err := postgresSource(address, o.prepare)
		return "postgres", dsn, err
	}
	return "", "", fmt.Errorf("schema: database url: unknown scheme %q: want sqlite or postgres", scheme)
}

func sqliteSource(rest string, existing bool) (string, error) {
	file, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("schema: database url %s: %w", Redacted("sqlite://"+rest), err)
	}
	if file == "" || strings.Contains(file, ":memory:") || params.Get("mode") == "memory" {
		return "", fmt.Errorf("schema: database url %s: a database in memory is another one for each connection: name a file", Redacted("sqlite://"+rest))
	}
	if existing {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("schema: open %s: %w: there is no such file", file, ErrMissing)
		}
		params.Set("mode", "rw")
	}
	for name, value := range map[string]string{
		"_txlock": "immediate", "_busy_timeout": "5000", "_journal_mode": "WAL", "_synchronous": "FULL", "_foreign_keys": "on",
	} {
		if !params.Has(name) {
			params.Set(name, value)
		}
	}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + params.Encode(), nil
}

func postgresSource(address string, prepare bool) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("schema: database url: not a URL: %w", errors.Unwrap(err))
	}
	params := u.Query()
	if !params.Has("connect_timeout") {
		params.Set("connect_timeout", "10") // the driver connects again, and listens, where no context can end it
	}
	if !prepare && !params.Has("binary_parameters") {
		params.Set("binary_parameters", strconv.FormatBool(true)) // one round trip without a prepared statement
	}
	u.RawQuery = params.Encode()
	return u.String(), nil
}
