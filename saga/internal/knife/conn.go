package knife

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Open makes a pool of a driver's connections that k can cut.
func Open(d driver.Driver, dsn string, k *Knife) *sql.DB { return sql.OpenDB(&connector{d, dsn, k}) }

type connector struct {
	driver driver.Driver
	dsn    string
	knife  *Knife
}

func (c *connector) Driver() driver.Driver { return c.driver }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	generation, err := c.knife.begins(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, knife: c.knife, generation: generation}, nil
}

func (c *connector) connect(ctx context.Context) (driver.Conn, error) {
	if d, ok := c.driver.(driver.DriverContext); ok {
		own, err := d.OpenConnector(c.dsn)
		if err != nil {
			return nil, err
		}
		return own.Connect(ctx)
	}
	return c.driver.Open(c.dsn)
}

// conn is a driver's connection that a knife can cut. The driver has the interfaces with contexts.
type conn struct {
	driver.Conn
	knife      *Knife
	generation int
	broken     bool
}

// under runs a statement under the knife. discard does away with an answer that is lost.
func under[T any](ctx context.Context, c *conn, text string, run func() (T, error), discard func(T)) (result T, err error) {
	var none T
	if c.broken {
		return none, c.knife.err
	}
	before, after := c.knife.cut(ctx, c.generation, text)
	if !before {
		result, err = run()
	}
	if !before && !after {
		return result, err
	}
	if after && err == nil && discard != nil {
		discard(result)
	}
	c.broken = true
	_ = c.Conn.Close()
	return none, c.knife.err
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	if c.broken {
		return nil
	}
	return c.Conn.Close()
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !c.broken && (!ok || v.IsValid())
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok && !c.broken {
		return r.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if own, ok := c.Conn.(driver.NamedValueChecker); ok {
		return own.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return under(ctx, c, query, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	}, drain)
}

// drain reads rows to their end: SQLite runs a statement no further than it is read.
func drain(rows driver.Rows) {
	row := make([]driver.Value, len(rows.Columns()))
	for rows.Next(row) == nil {
	}
	_ = rows.Close()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return under(ctx, c, query, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	}, nil)
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := under(ctx, c, "BEGIN", func() (driver.Tx, error) { return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts) }, nil)
	if err != nil {
		return nil, err
	}
	return &tx{inner, c, ctx}, nil
}

// tx is a transaction on a conn.
type tx struct {
	driver.Tx
	conn *conn
	ctx  context.Context // that it was begun with
}

// Commit implements driver.Tx.
func (t *tx) Commit() error {
	_, err := under(t.ctx, t.conn, "COMMIT", func() (struct{}, error) { return struct{}{}, t.Tx.Commit() }, nil)
	return err
}

// Rollback implements driver.Tx. It does not count: a connection that was cut rolls back too.
func (t *tx) Rollback() error {
	if t.conn.broken {
		return t.conn.knife.err
	}
	return t.Tx.Rollback()
}

// PrepareContext implements driver.ConnPrepareContext. Only running the statement counts.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.broken {
		return nil, c.knife.err
	}
	inner, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return &stmt{inner, c, query}, nil
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, query)
	}
	return c.Conn.Prepare(query)
}

// stmt is a prepared statement on a conn.
type stmt struct {
	driver.Stmt
	conn  *conn
	query string
}

// Close implements driver.Stmt.
func (s *stmt) Close() error {
	if s.conn.broken {
		return nil
	}
	return s.Stmt.Close()
}

// CheckNamedValue implements driver.NamedValueChecker.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if own, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return own.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return under(ctx, s.conn, s.query, func() (driver.Rows, error) {
		return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	}, drain)
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return under(ctx, s.conn, s.query, func() (driver.Result, error) {
		return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	}, nil)
}
