package lease_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestDriverThatHangsDelaysNeitherTheLossNorTheReturn(t *testing.T) {
	hanging(t, func(t *testing.T, db *schema.DB, g *gate) {
		work, stop := holding(t, locker(db))
		taken := time.Now()
		g.shut()
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), lease.ErrLost)
		require.WithinDuration(t, taken.Add(ttl-ttl/10), time.Now(), 0)
		lost := time.Now()
		require.ErrorIs(t, stop(), lease.ErrLost)
		require.WithinDuration(t, lost, time.Now(), 10*time.Second)
		g.open()
		synctest.Wait()
		time.Sleep(ttl)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestLeaseTakenTooLateIsGivenBack(t *testing.T) {
	hanging(t, func(t *testing.T, db *schema.DB, g *gate) {
		g.reads.Store(true)
		for term, late := range []time.Duration{0, 10 * ttl} {
			g.shut()
			err := locker(db).Hold(t.Context(), func(context.Context) error { panic("called") })
			require.EqualError(t, err, "lease: take sweep: the database did not answer in time")
			time.Sleep(late)
			g.open()
			synctest.Wait()
			require.EqualValues(t, 2*term+1, row(t, db).Term)
			require.NoError(t, locker(db).Hold(t.Context(), nothing))
			require.EqualValues(t, 2*term+2, row(t, db).Term)
		}
	})
}

func TestLookThatHangsTakesNothingWhenItComesBack(t *testing.T) {
	hanging(t, func(t *testing.T, db *schema.DB, g *gate) {
		g.shut()
		err := locker(db).Hold(t.Context(), func(context.Context) error { panic("called") })
		require.EqualError(t, err, "lease: take sweep: the database did not answer in time")
		g.open()
		synctest.Wait()
		var rows int
		require.NoError(t, db.Get(t.Context(), &rows, "SELECT count(*) FROM {deadline_lock}"))
		require.Zero(t, rows)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestLeaseTakenAfterItsCallerLeftIsGivenBack(t *testing.T) {
	hanging(t, func(t *testing.T, db *schema.DB, g *gate) {
		g.shut()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- locker(db).Hold(ctx, func(context.Context) error { panic("called") }) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		g.open()
		synctest.Wait()
		require.EqualValues(t, 1, row(t, db).Term)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

// gate sits between a pool and the driver of a real database; while it is shut, statements hang whatever
// becomes of their contexts.
type gate struct {
	way   atomic.Pointer[chan struct{}]
	reads atomic.Bool // pass nevertheless
}

func (g *gate) shut() { way := make(chan struct{}); g.way.Store(&way) }
func (g *gate) open() { close(*g.way.Load()) }
func (g *gate) pass(query string) {
	read := g.reads.Load() && strings.HasPrefix(query, "SELECT")
	if way := g.way.Load(); way != nil && !read {
		<-*way
	}
}

// hanging is schematest.Bubble with a gate in the pool.
func hanging(t *testing.T, body func(t *testing.T, db *schema.DB, g *gate)) {
	t.Helper()
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			synctest.Test(t, func(t *testing.T) {
				schematest.Open(t, address, schema.WithProcessClock())
				g := &gate{}
				inner, driverName, source := schematest.Driver(t, address)
				pool := sql.OpenDB(gateConnector{g, inner, source})
				t.Cleanup(func() { require.NoError(t, pool.Close()) })
				db, err := schema.Wrap(sqlx.NewDb(pool, driverName), schema.WithProcessClock(), schema.WithoutPrepare())
				require.NoError(t, err)
				body(t, db, g)
			})
		})
	}
}

type gateConnector struct {
	gate   *gate
	inner  driver.Driver
	source string
}

func (c gateConnector) Driver() driver.Driver { return c.inner }
func (c gateConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.inner.Open(c.source)
	if err != nil {
		return nil, err
	}
	return gateConn{conn.(fullConn), c.gate}, nil
}

type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.QueryerContext
	driver.ExecerContext
}

type gateConn struct {
	fullConn
	gate *gate
}

func (c gateConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.gate.pass(query)
	return c.fullConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

func (c gateConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.gate.pass(query)
	return c.fullConn.ExecContext(context.WithoutCancel(ctx), query, args)
}
