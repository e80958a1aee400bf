package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

// Migrate creates norn's tables or brings them to this build's version. It is safe when several
// processes start at once: on Postgres they take turns by a session lock, on SQLite by a lock file
// beside the database. Run again it does nothing; tables newer than this build are left alone.
func Migrate(ctx context.Context, d *DB) error {
	current, latest, err := Versions(ctx, d)
	if err != nil {
		return err
	}
	if current < latest {
		if err := migrate(ctx, d); err != nil {
			return fmt.Errorf("schema: migrate: %w", err)
		}
	}
	return probe(ctx, d)
}

// Check reads the version of norn's tables and creates nothing. Tables that are missing or too old
// are [ErrMissing], and the error names the command that mends it.
func Check(ctx context.Context, d *DB) error {
	current, latest, err := Versions(ctx, d)
	if err != nil {
		return err
	}
	if current < latest {
		return fmt.Errorf("schema: %w: the database is at version %d, this build wants %d: run `%s` or set saga.deadline.schema.auto to true",
			ErrMissing, current, latest, d.command())
	}
	return probe(ctx, d)
}

func (d *DB) command() string {
	address := d.url
	if address == "" {
		address = "URL"
	}
	command := "norn schema up --database " + quoted(Redacted(address))
	if d.names.Prefix != "" {
		command += " --table-prefix " + d.names.Prefix
	}
	if d.names != (Names{Prefix: d.names.Prefix}).resolved() {
		command += " --config FILE"
	}
	return command
}

// quoted is text as one word of a shell.
func quoted(text string) string {
	if !strings.ContainsAny(text, " \t&;|<>()$`\\\"'*?[]#~!{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Versions tells the version of the tables as they are and as this build wants them; 0 is none.
func Versions(ctx context.Context, d *DB) (current, latest int64, err error) {
	files, err := d.rendered()
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files.(flatFS) {
		version, err := goose.NumericComponent(file.name)
		if err != nil {
			return 0, 0, fmt.Errorf("schema: migration %s: %w", file.name, err)
		}
		latest = max(latest, version)
	}
	exists, err := tableExists(ctx, d, d.names.versionTable())
	if err != nil || !exists {
		return 0, latest, err
	}
	query := "SELECT COALESCE(max(version_id), 0) FROM " + d.dialect.quote(d.names.versionTable()) + " WHERE is_applied"
	if err := d.QueryRowContext(ctx, query).Scan(&current); err != nil {
		return 0, 0, fmt.Errorf("schema: read version: %w", d.classify(err))
	}
	return current, latest, nil
}

func tableExists(ctx context.Context, d *DB, name string) (bool, error) {
	query := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND lower(name) = $1"
	if d.writer == nil {
		query = "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass(quote_ident($1))"
	}
	var n int
	err := patiently(ctx, func() error { return d.QueryRowContext(ctx, query, strings.ToLower(name)).Scan(&n) })
	if err != nil {
		return false, fmt.Errorf("schema: look for table %s: %w", name, d.classify(err))
	}
	return n > 0, nil
}

// probe finds tables that the version table promises and the configured names do not lead to.
func probe(ctx context.Context, d *DB) error {
	var errs []error
	for _, table := range tables {
		name := *d.names.byToken()[table]
		exists, err := tableExists(ctx, d, name)
		if err != nil {
			return err
		}
		if !exists {
			errs = append(errs, fmt.Errorf("schema: %w: there is no table %s, though %s says that it was created: were table names changed after the first start?",
				ErrMissing, name, d.names.versionTable()))
		}
	}
	return errors.Join(errs...)
}

func migrate(ctx context.Context, d *DB) error {
	if d.writer == nil {
		id, err := d.lockID(ctx)
		if err != nil {
			return err
		}
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(id), lock.WithLockTimeout(1, 300))
		if err != nil {
			return err
		}
		return up(ctx, d, database.DialectPostgres, goose.WithSessionLocker(locker))
	}
	file, err := sqliteFile(ctx, d)
	if err != nil {
		return err
	}
	guard := flock.New(file + ".norn-schema.lock")
	if _, err := guard.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", guard.Path(), err)
	}
	return errors.Join(up(ctx, d, database.DialectSQLite3), guard.Close())
}

// lockID is another number for each version table and schema, so that installations do not wait for each
// other.
func (d *DB) lockID(ctx context.Context) (int64, error) {
	var space sql.NullString
	if err := d.QueryRowContext(ctx, "SELECT current_schema()").Scan(&space); err != nil {
		return 0, d.classify(err)
	}
	if !space.Valid {
		return 0, errors.New("no schema of the search_path exists, or the user may use none of them")
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(space.String + "." + d.names.versionTable()))
	return int64(h.Sum32()), nil
}

func up(ctx context.Context, d *DB, kind database.Dialect, opts ...goose.ProviderOption) error {
	files, err := d.rendered()
	if err != nil {
		return err
	}
	opts = append(opts, goose.WithTableName(d.names.versionTable()), goose.WithDisableGlobalRegistry(true))
	provider, err := goose.NewProvider(kind, d.DB.DB, files, opts...)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func sqliteFile(ctx context.Context, d *DB) (string, error) {
	var file sql.NullString
	err := d.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file)
	if err != nil {
		return "", err
	}
	if file.String == "" {
		return "", errors.New("the SQLite database is in memory: use a file")
	}
	return file.String, nil
}
