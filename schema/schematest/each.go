package schematest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
)

// Env names the environment variable with the URL of the Postgres to test on.
const Env = "NORN_TEST_POSTGRES"

// Each runs body as a subtest on SQLite and on Postgres, each time on fresh, migrated tables of its
// own. Without a Postgres the test fails and says how to get one.
func Each(t *testing.T, body func(t *testing.T, db *schema.DB)) {
	t.Helper()
	for _, name := range Databases {
		t.Run(name, func(t *testing.T) { body(t, Open(t, URL(t, name))) })
	}
}

// Bubble is Each with every body in a testing/synctest bubble: time is virtual, the clock is the
// process clock, and the pool is opened inside.
func Bubble(t *testing.T, body func(t *testing.T, db *schema.DB)) {
	t.Helper()
	for _, name := range Databases {
		t.Run(name, func(t *testing.T) {
			address := URL(t, name)
			synctest.Test(t, func(t *testing.T) { body(t, Open(t, address, schema.WithProcessClock())) })
		})
	}
}

// Databases are the names of the databases, as subtests are called.
var Databases = []string{"sqlite", "postgres"}

// URL makes an empty place for norn's tables on the named database, removed with the test: a file on
// SQLite, a schema on Postgres. Several pools, also of other processes, may open it.
func URL(t testing.TB, name string) string {
	t.Helper()
	if name == "sqlite" {
		return "sqlite://" + filepath.Join(t.TempDir(), "norn.db") + "?_synchronous=OFF&_busy_timeout=0"
	}
	server := os.Getenv(Env)
	if server == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, which brings its own Postgres, or set it to a postgres:// URL", Env)
	}
	space := "norn_" + strings.ToLower(rand.Text())
	administer(t, server, "CREATE SCHEMA "+space)
	t.Cleanup(func() { administer(t, server, "DROP SCHEMA "+space+" CASCADE") })
	address, err := url.Parse(server)
	require.NoError(t, err)
	query := address.Query()
	query.Set("search_path", space)
	address.RawQuery = query.Encode()
	return address.String()
}

func administer(t testing.TB, server, statement string) {
	t.Helper()
	db, err := Dial(context.WithoutCancel(t.Context()), server, schema.WithMaxOpen(1))
	require.NoError(t, err)
	_, err = db.DB.Exec(statement)
	require.NoError(t, err, fmt.Sprintf("run %q", statement))
	require.NoError(t, errors.Join(db.Close(), db.DB.Close()))
}

// Open is [Connect] with norn's tables migrated.
func Open(t testing.TB, address string, opts ...schema.Option) *schema.DB {
	t.Helper()
	db := Connect(t, address, opts...)
	require.NoError(t, schema.Migrate(t.Context(), db))
	return db
}
