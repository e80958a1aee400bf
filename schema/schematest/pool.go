package schematest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
)

// The drivers that tests run on. The module in compat/ adds a file to this package that sets others.
var (
	open     = schema.Open
	driverOf = ownDriver
)

// Dial is schema.Open through the drivers that tests run on. The caller closes both what it returns and the pool in it,
// which norn closes itself only where it is of norn's own drivers.
func Dial(ctx context.Context, address string, opts ...schema.Option) (*schema.DB, error) {
	return open(ctx, address, opts...)
}

// Connect opens a pool on a place made by [URL], with the tables that are there, closed with the test.
func Connect(t testing.TB, address string, opts ...schema.Option) *schema.DB {
	t.Helper()
	db, err := Dial(t.Context(), address, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.NoError(t, db.DB.Close())
	})
	return db
}

// Driver is the driver that [Connect] opens an address with, its name as sqlx knows it, and what it wants to hear: for
// tests that put something between a pool and its driver.
func Driver(t testing.TB, address string) (d driver.Driver, name, dsn string) {
	t.Helper()
	d, name, dsn, err := driverOf(address)
	require.NoError(t, err)
	return d, name, dsn
}

func ownDriver(address string) (d driver.Driver, name, dsn string, err error) {
	name, dsn = "postgres", address
	if rest, isSQLite := strings.CutPrefix(address, "sqlite://"); isSQLite {
		name, dsn = "sqlite3", "file:"+rest+"&_txlock=immediate&_journal_mode=WAL"
	}
	pool, err := sql.Open(name, "")
	if err != nil {
		return nil, "", "", err
	}
	return pool.Driver(), name, dsn, pool.Close()
}
