package schema

import (
	"context"
	"database/sql"
)

// Conn is one connection taken out of the pool, so that whoever holds it never waits for the pool.
// Its statements are each a transaction of their own. It is not safe for concurrent use.
type Conn struct {
	db   *DB
	conn *sql.Conn
}

// Reserve takes a connection out of the pool until [Conn.Close].
func (d *DB) Reserve(ctx context.Context) (*Conn, error) {
	conn, err := d.DB.DB.Conn(ctx)
	if err != nil {
		return nil, runner{db: d}.failure(ctx, err)
	}
	return &Conn{d, conn}, nil
}

// Exec runs one statement and returns how many rows it changed. After [ErrUnavailable] the connection
// is of no use any more.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	release, err := c.db.write(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	err = patiently(ctx, func() (err error) {
		changed, err = c.runner().exec(ctx, query, args)
		return err
	})
	return changed, err
}

// Get runs a statement that changes rows and returns one (INSERT … RETURNING) into dest.
func (c *Conn) Get(ctx context.Context, dest any, query string, args ...any) error {
	release, err := c.db.write(ctx)
	if err != nil {
		return err
	}
	defer release()
	return patiently(ctx, func() error { return c.runner().get(ctx, dest, query, args) })
}

// Read runs a statement that changes nothing and returns one row into dest; without a row it is sql.ErrNoRows. It does
// not wait for this process' writers.
func (c *Conn) Read(ctx context.Context, dest any, query string, args ...any) error {
	return patiently(ctx, func() error { return c.runner().get(ctx, dest, query, args) })
}

func (c *Conn) runner() runner {
	return runner{db: c.db, on: c.conn, statement: func(context.Context, string) (*sql.Stmt, error) { return nil, nil }}
}

// Close gives the connection back to the pool.
func (c *Conn) Close() error { return c.conn.Close() }
