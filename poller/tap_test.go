package poller_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// tap sits between a pool and the driver of a real database: it sees the statements, and can make the
// database unreachable.
type tap struct {
	gone atomic.Bool

	mu   sync.Mutex
	seen []statement
}

type statement struct {
	text string
	args []any
}

// tapped is schematest.Bubble with a tap on the pool.
func tapped(t *testing.T, body func(t *testing.T, db *schema.DB, tap *tap)) {
	t.Helper()
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			synctest.Test(t, func(t *testing.T) {
				schematest.Open(t, address, schema.WithProcessClock())
				tap := &tap{}
				inner, driverName, source := schematest.Driver(t, address)
				pool := sql.OpenDB(tapConnector{tap, inner, source})
				t.Cleanup(func() { require.NoError(t, pool.Close()) })
				pool.SetMaxOpenConns(8)
				db, err := schema.Wrap(sqlx.NewDb(pool, driverName), schema.WithProcessClock(), schema.WithoutPrepare())
				require.NoError(t, err)
				body(t, db, tap)
			})
		})
	}
}

// take returns the statements since the last call whose text contains part.
func (p *tap) take(part string) (found []statement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if strings.Contains(s.text, part) {
			found = append(found, s)
		}
	}
	p.seen = nil
	return found
}

func (p *tap) see(text string, args []driver.NamedValue) error {
	if p.gone.Load() {
		return driver.ErrBadConn
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := statement{text: text}
	for _, a := range args {
		s.args = append(s.args, a.Value)
	}
	p.seen = append(p.seen, s)
	return nil
}

func (p *tap) connect(open func() (driver.Conn, error)) (driver.Conn, error) {
	if p.gone.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	conn, err := open()
	if err != nil {
		return nil, err
	}
	return tapConn{conn.(fullConn), p}, nil
}

type tapConnector struct {
	tap    *tap
	inner  driver.Driver
	source string
}

func (c tapConnector) Driver() driver.Driver { return c.inner }
func (c tapConnector) Connect(context.Context) (driver.Conn, error) {
	return c.tap.connect(func() (driver.Conn, error) { return c.inner.Open(c.source) })
}

type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
}

type tapConn struct {
	fullConn
	tap *tap
}

func (c tapConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.tap.see("BEGIN", nil); err != nil {
		return nil, err
	}
	return c.fullConn.BeginTx(ctx, opts)
}

func (c tapConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.tap.see(query, args); err != nil {
		return nil, err
	}
	return c.fullConn.QueryContext(ctx, query, args)
}

func (c tapConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.tap.see(query, args); err != nil {
		return nil, err
	}
	return c.fullConn.ExecContext(ctx, query, args)
}

func (c tapConn) IsValid() bool {
	v, ok := c.fullConn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c tapConn) ResetSession(ctx context.Context) error {
	if r, ok := c.fullConn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}
