// Package compat opens norn's databases through drivers that norn does not depend on: jackc/pgx and modernc.org/sqlite.
// Norn's own tests run on them through it: `make compat`.
package compat

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // registers "sqlite"

	"github.com/norn-go/norn/schema"
)

// Open is schema.Open through the other drivers, as an application does it that brings its own pool. The pool is the
// caller's to close.
func Open(_ context.Context, address string, opts ...schema.Option) (*schema.DB, error) {
	name, dsn, err := Source(address)
	if err != nil {
		return nil, err
	}
	pool, err := sqlx.Open(name, dsn)
	if err != nil {
		return nil, fmt.Errorf("compat: open: %w", err)
	}
	most := map[string]int{"sqlite": 4, "pgx": 32}[name]
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return schema.Wrap(pool, opts...)
}

// Driver is the driver of an address, its name and what it wants to hear.
func Driver(address string) (d driver.Driver, name, dsn string, err error) {
	name, dsn, err = Source(address)
	if err != nil {
		return nil, "", "", err
	}
	pool, err := sql.Open(name, dsn)
	if err != nil {
		return nil, "", "", fmt.Errorf("compat: driver %s: %w", name, err)
	}
	return pool.Driver(), name, dsn, pool.Close()
}

// Source turns an address as schema.Open takes it into a driver's name and data source, and parameters of norn's own
// drivers into those of the other ones.
func Source(address string) (name, dsn string, err error) {
	rest, isSQLite := strings.CutPrefix(address, "sqlite://")
	if !isSQLite {
		dsn, err := withoutOwn(address)
		return "pgx", dsn, err
	}
	file, query, _ := strings.Cut(rest, "?")
	given, err := url.ParseQuery(query)
	if err != nil {
		return "", "", fmt.Errorf("compat: %s: %w", address, err)
	}
	params := url.Values{"_txlock": {"immediate"}}
	if given.Has("_txlock") {
		params["_txlock"] = given["_txlock"]
	}
	for _, pragma := range [][2]string{{"busy_timeout", "5000"}, {"journal_mode", "WAL"}, {"synchronous", "FULL"}, {"foreign_keys", "on"}} {
		value := pragma[1]
		if given.Has("_" + pragma[0]) {
			value = given.Get("_" + pragma[0])
		}
		params.Add("_pragma", pragma[0]+"("+value+")")
	}
	return "sqlite", "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + params.Encode(), nil
}

// withoutOwn leaves out what only lib/pq has: pgx always sends parameters apart from the statement.
func withoutOwn(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("compat: %w", err)
	}
	params := u.Query()
	params.Del("binary_parameters")
	u.RawQuery = params.Encode()
	return u.String(), nil
}
