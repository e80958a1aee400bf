package schema_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// each opens a database without tables.
func each(t *testing.T, body func(t *testing.T, address string)) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) { body(t, schematest.URL(t, name)) })
	}
}

func open(t *testing.T, address string, opts ...schema.Option) *schema.DB {
	t.Helper()
	return schematest.Connect(t, address, opts...)
}

// catalogue describes the tables as the database has them.
func catalogue(t *testing.T, db *schema.DB) string {
	t.Helper()
	query := "SELECT COALESCE(sql, type || ' ' || name) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY tbl_name, type DESC, name"
	if db.Dialect() == "postgres" {
		query = `SELECT line FROM (
			SELECT table_name AS t, 0 AS k, ordinal_position AS n, table_name || '.' || column_name || ' ' || data_type || ' ' ||
				COALESCE('collate ' || collation_name || ' ', '') || CASE is_nullable WHEN 'NO' THEN 'not null' ELSE 'null' END ||
				COALESCE(' default ' || replace(column_default, current_schema || '.', ''), '') || CASE is_identity WHEN 'YES' THEN ' identity' ELSE '' END AS line
			FROM information_schema.columns WHERE table_schema = current_schema
			UNION ALL SELECT tablename, 1, 0, replace(indexdef, current_schema || '.', '') FROM pg_indexes WHERE schemaname = current_schema
			UNION ALL SELECT rel.relname, 2, 0, 'constraint ' || conname || ' ' || pg_get_constraintdef(c.oid)
				FROM pg_constraint c JOIN pg_class rel ON rel.oid = c.conrelid WHERE c.connamespace = current_schema::regnamespace
		) AS lines ORDER BY t, k, n, line COLLATE "C"`
	}
	var lines []string
	require.NoError(t, db.DB.SelectContext(t.Context(), &lines, query))
	return strings.Join(lines, "\n") + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s is not current: run `make golden` and read the difference", file)
}

func TestCatalogueIsTheGoldenOne(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		db := open(t, address)
		require.NoError(t, schema.Migrate(t.Context(), db))
		golden(t, "catalogue."+db.Dialect()+".golden", catalogue(t, db))
	})
}

func TestPrefixReachesEveryTableAndIndex(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		db := open(t, address, schema.WithNames(schema.Names{Prefix: "Shop_", Command: "outgoing"}))
		require.NoError(t, schema.Migrate(t.Context(), db))
		got := catalogue(t, db)
		require.NotRegexp(t, regexp.MustCompile(`(?im)(^|[^_a-z])(saga_(instance|association|deadline|command|event|history)|norn_)`), got, "a name without the prefix")
		require.Contains(t, got, "shop_norn_schema_version")
		require.Contains(t, got, "outgoing_next")
		require.NotContains(t, strings.ToLower(got), "shop_outgoing")
	})
}

func TestTwoInstallationsShareADatabase(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		one, two := open(t, address, schema.WithNames(schema.Names{Prefix: "one_"})), open(t, address, schema.WithNames(schema.Names{Prefix: "two_"}))
		require.NoError(t, schema.Migrate(t.Context(), one))
		require.NoError(t, schema.Migrate(t.Context(), two))
		_, err := one.Exec(t.Context(), "INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES ('a', 'h', 1, {now})")
		require.NoError(t, err)
		var n int
		require.NoError(t, two.Get(t.Context(), &n, "SELECT count(*) FROM {deadline_lock}"))
		require.Zero(t, n)
	})
}

func TestManyStartsAtOnceMigrateOnce(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		var group errgroup.Group
		for range 8 {
			db := open(t, address)
			group.Go(func() error { return schema.Migrate(context.Background(), db) })
		}
		require.NoError(t, group.Wait())
		current, latest, err := schema.Versions(t.Context(), open(t, address))
		require.NoError(t, err)
		require.Equal(t, latest, current)
	})
}

func TestCheckCreatesNothingAndNamesTheCommand(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		db := open(t, address, schema.WithNames(schema.Names{Prefix: "shop_"}))
		err := schema.Check(t.Context(), db)
		require.ErrorIs(t, err, schema.ErrMissing)
		require.ErrorContains(t, err, "norn schema up --database ")
		require.ErrorContains(t, err, "--table-prefix shop_")
		require.Equal(t, "\n", catalogue(t, db))
		require.NoError(t, schema.Migrate(t.Context(), db))
		require.NoError(t, schema.Check(t.Context(), db))
	})
}

func TestRenamedTablesAreMissed(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		require.NoError(t, schema.Migrate(t.Context(), open(t, address)))
		err := schema.Migrate(t.Context(), open(t, address, schema.WithNames(schema.Names{Event: "inbox"})))
		require.ErrorIs(t, err, schema.ErrMissing)
		require.ErrorContains(t, err, "inbox")
	})
}

func TestNamesThatAreNoneAreReportedTogether(t *testing.T) {
	err := schema.Names{Prefix: "a-b", Event: `x"; DROP`, Command: "SAME", History: "same", Instance: strings.Repeat("n", 41)}.Validate()
	for _, part := range []string{`prefix "a-b"`, "DROP", `"same" of history is the name of command too`, "longer than 40"} {
		require.ErrorContains(t, err, part)
	}
	require.NoError(t, schema.Names{}.Validate())
}

func TestURLsThatAreNoneAreRefusedWithoutThePassword(t *testing.T) {
	for address, part := range map[string]string{
		"mysql://u:secret@h/d":               `unknown scheme "mysql"`,
		"sqlite://":                          "in memory",
		"sqlite://:memory:":                  "in memory",
		"sqlite://x?mode=memory":             "in memory",
		"file.db":                            "want sqlite://FILE",
		"postgres://u:secret@127.0.0.1:1/db": "connect",
		"postgres://u:secret@[::1/db":        "not a URL",
		"sqlite:///nowhere/at/all/x.db":      "unable to open",
	} {
		_, err := schema.Open(t.Context(), address)
		require.ErrorContains(t, err, part, address)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestPoolsOfTheApplicationStayOpen(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		owner := open(t, address)
		db, err := schema.Wrap(owner.DB)
		require.NoError(t, err)
		require.NoError(t, schema.Migrate(t.Context(), db))
		require.NoError(t, db.Close())
		require.NoError(t, owner.PingContext(t.Context()))
		require.False(t, db.CanListen())
	})
}

func TestOtherDriversAreRefused(t *testing.T) {
	_, err := schema.Wrap(sqlx.NewDb(open(t, schematest.URL(t, "sqlite")).DB.DB, "oracle"))
	require.ErrorContains(t, err, fmt.Sprintf("driver %q", "oracle"))
}
