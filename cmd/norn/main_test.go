package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// norn runs the program in this process.
func norn(args ...string) (output string, err error) {
	var out strings.Builder
	c := root()
	c.SetArgs(args)
	c.SetOut(&out)
	err = c.ExecuteContext(context.Background())
	return out.String(), err
}

func each(t *testing.T, body func(t *testing.T, address string)) {
	t.Helper()
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) { body(t, schematest.URL(t, name)) })
	}
}

func TestUpCreatesTheTablesOnce(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		_, err := norn("schema", "status", "--database", address)
		require.ErrorIs(t, err, schema.ErrMissing)

		output, err := norn("schema", "up", "--database", address)
		require.NoError(t, err)
		require.Contains(t, output, "the tables went from version 0 to ")

		output, err = norn("schema", "up", "--database", address)
		require.NoError(t, err)
		require.Contains(t, output, " already\n")

		_, err = norn("schema", "status", "--database", address)
		require.NoError(t, err)
	})
}

func TestPrefixesAreInstallationsOfTheirOwn(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		_, err := norn("schema", "up", "--database", address, "--table-prefix", "shop_")
		require.NoError(t, err)
		_, err = norn("schema", "status", "--database", address, "--table-prefix", "shop_")
		require.NoError(t, err)
		_, err = norn("schema", "status", "--database", address)
		require.ErrorIs(t, err, schema.ErrMissing)
	})
}

func TestSettingsSayWhatTheFlagsDoNot(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		file := filepath.Join(t.TempDir(), "shop.yaml")
		content := "database:\n  url: '" + address + "'\nsaga:\n  schema:\n    tables:\n      command: SHOP_COMMAND\n"
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := norn("schema", "up", "--config", file)
		require.NoError(t, err)

		db, err := schema.Open(t.Context(), address, schema.WithNames(schema.Names{Command: "SHOP_COMMAND"}))
		require.NoError(t, err)
		require.NoError(t, schema.Check(t.Context(), db))
		require.NoError(t, db.Close())
	})
}

// TestTheCommandOfTheErrorMends runs, in a shell and word by word, the command that the error about missing tables names.
func TestTheCommandOfTheErrorMends(t *testing.T) {
	program := filepath.Join(t.TempDir(), "norn")
	build, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(build))
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte("saga:\n  schema:\n    tables:\n      event: SHOP_EVENT\n"), 0o600))

	for title, names := range map[string]schema.Names{
		"default names": {}, "a prefix": {Prefix: "shop_"}, "a name of its own": {Prefix: "shop_", Event: "SHOP_EVENT"},
	} {
		t.Run(title, func(t *testing.T) {
			each(t, func(t *testing.T, address string) {
				db, err := schema.Open(t.Context(), address, schema.WithNames(names))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, db.Close()) })
				missing := schema.Check(t.Context(), db)
				require.ErrorIs(t, missing, schema.ErrMissing)

				command := regexp.MustCompile("`norn (.*)`").FindStringSubmatch(missing.Error())
				require.NotNil(t, command, missing)
				line := program + " " + strings.NewReplacer("FILE", file, schema.Redacted(address), address).Replace(command[1])
				output, err := exec.Command("sh", "-c", line).CombinedOutput()
				require.NoError(t, err, "%s: %s", line, output)
				require.NoError(t, schema.Check(t.Context(), db))
			})
		})
	}
}

func TestWithoutADatabaseTheErrorSaysHowToNameOne(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := norn("schema", "status")
	require.EqualError(t, err, "no database: give --database URL, or set database.url (DATABASE_URL)")
}

func TestStatusCreatesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.db")
	_, err := norn("schema", "status", "--database", "sqlite://"+file)
	require.EqualError(t, err, "schema: open "+file+": tables are missing: there is no such file")
	require.NoFileExists(t, file)
}

func TestStatusNamesTheCommandThatMends(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		db, err := schema.Open(t.Context(), address)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		output, err := norn("schema", "status", "--database", address)
		require.Regexp(t, `^version 0, wanted \d+\n$`, output)
		require.EqualError(t, err, "tables are missing: `norn schema up` with the same flags creates or migrates them")
	})
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown command "upp" for "norn schema": did you mean up?`:        {"schema", "upp"},
		`unknown command "frob" for "norn schema": see norn schema --help`: {"schema", "frob"},
		`unknown command "shema" for "norn": did you mean schema?`:         {"shema", "up"},
	} {
		_, err := norn(args...)
		require.EqualError(t, err, want)
	}
	output, err := norn("schema")
	require.NoError(t, err)
	require.Contains(t, output, "status")
}

func TestVersionNamesTheProgram(t *testing.T) {
	output, err := norn("version")
	require.NoError(t, err)
	require.Regexp(t, `^norn \S+\n$`, output)
}
