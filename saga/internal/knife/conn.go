package knife

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Open makes a pool of connections from a stock that k can cut.
func Open(s *Stock, k *Knife) *sql.DB { return sql.OpenDB(&connector{s, k}) }

type connector struct {
	stock *Stock
	knife *Knife
}

func (c *connector) Driver() driver.Driver { return c.stock.driver }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	generation, err := c.knife.begins(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := c.stock.take(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: raw, stock: c.stock, knife: c.knife, generation: generation}, nil
}

// conn is a driver's connection that a knife can cut. The driver has the interfaces with contexts.
type conn struct {
	driver.Conn
	stock      *Stock
	knife      *Knife
	generation int
	tx         driver.Tx // nil: none is open
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
	_ = c.end()
	return none, c.knife.err
}

// end gives the connection up, and with it its transaction.
func (c *conn) end() error {
	if c.tx != nil {
		_ = c.tx.Rollback()
		c.tx = nil
	}
	return c.stock.give(c.Conn)
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	if c.broken {
		return nil
	}
	return c.end()
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
	return under(ctx, c, "BEGIN", func() (_ driver.Tx, err error) {
		if c.tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts); err != nil {
			c.tx = nil
			return nil, err
		}
		return &tx{c, ctx}, nil
	}, nil)
}

// tx is the transaction on a conn.
type tx struct {
	conn *conn
	ctx  context.Context // that it was begun with
}

// Commit implements driver.Tx.
func (t *tx) Commit() error {
	_, err := under(t.ctx, t.conn, "COMMIT", func() (struct{}, error) { return struct{}{}, t.over().Commit() }, nil)
	return err
}

// Rollback implements driver.Tx. It does not count: a connection that was cut rolls back too.
func (t *tx) Rollback() error {
	if t.conn.broken {
		return t.conn.knife.err
	}
	return t.over().Rollback()
}

func (t *tx) over() driver.Tx {
	inner := t.conn.tx
	t.conn.tx = nil
	return inner
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
