package fxmodule

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/schema"
)

// database is norn's database and the framework clock that is corrected by it.
type database struct {
	*schema.DB
	clock *schema.Clock
	err   error // why there is none
}

// openTimeout limits the first connection: fx gives constructors no context.
const openTimeout = 10 * time.Second

func openDatabase(c *checked, n *node) *database {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	db, err := c.open(ctx, schemaOptions(c.config, n))
	if err != nil {
		return &database{err: err}
	}
	n.database = db
	d := &database{DB: db, clock: schema.NewClock(db)}
	n.add(part{
		name:  "tables",
		share: 1,
		start: func(ctx context.Context) error {
			logSettings(c, n)
			return d.prepare(ctx, c.config)
		},
		stop: func() error { return nil },
	})
	return d
}

func logSettings(c *checked, n *node) {
	for _, warning := range c.source.Warnings() {
		n.log.Warn("fxmodule: a setting is left out", "warning", warning)
	}
	n.log.Info("fxmodule: settings", "from", c.from, "settings", c.config)
}

func (c *checked) open(ctx context.Context, opts []schema.Option) (*schema.DB, error) {
	if c.given == nil {
		return schema.Open(ctx, c.config.Database.URL, opts...)
	}
	return schema.Wrap(c.given, opts...)
}

// TableNames are the names of norn's tables by the settings, for programs that open the database themselves.
func TableNames(c config.Config) schema.Names {
	t := c.Schema.Tables
	return schema.Names{
		Prefix: c.Schema.TablePrefix, Instance: t.Instance, Association: t.Association, Deadline: t.Deadline,
		DeadlineLock: t.DeadlineLock, Command: t.Command, Event: t.Event, History: t.History,
	}
}

func schemaOptions(c config.Config, n *node) []schema.Option {
	opts := []schema.Option{
		schema.WithLogger(n.log),
		schema.WithMaxOpen(c.Database.MaxOpen),
		schema.WithNames(TableNames(c)),
	}
	if c.Clock == config.ClockProcess {
		opts = append(opts, schema.WithProcessClock())
	}
	if !c.Database.Prepare {
		opts = append(opts, schema.WithoutPrepare())
	}
	return opts
}

func (d *database) prepare(ctx context.Context, c config.Config) error {
	if _, err := d.clock.Measure(ctx); err != nil {
		return fmt.Errorf("fxmodule: measure the clock: %w", err)
	}
	if c.Schema.Auto {
		return schema.Migrate(ctx, d.DB)
	}
	return schema.Check(ctx, d.DB)
}

// smallestPool leaves two connections for work: poller and relay keep one each for their leases.
const smallestPool = 4

// choose finds the one database of the application, or none where norn opens one.
func (c *checked) choose(plain *sql.DB, extended *sqlx.DB) (*sqlx.DB, error) {
	given, err := c.theOne(plain, extended)
	if err != nil || given == nil {
		return nil, err
	}
	if most := given.Stats().MaxOpenConnections; most > 0 && most < smallestPool {
		return nil, fmt.Errorf("fxmodule: the application's database opens at most %d connections: want at least %d (SetMaxOpenConns), "+
			"for poller and relay keep one each for their leases", most, smallestPool)
	}
	return given, nil
}

func (c *checked) theOne(plain *sql.DB, extended *sqlx.DB) (*sqlx.DB, error) {
	var given []string
	if plain != nil {
		given = append(given, "a *sql.DB")
	}
	if extended != nil {
		given = append(given, "a *sqlx.DB")
	}
	url := c.config.Database.URL
	switch {
	case url != "" && len(given) > 0:
		return nil, fmt.Errorf("fxmodule: database.url is %s, but the application provides %s too: want one database",
			schema.Redacted(url), strings.Join(given, " and "))
	case url != "":
		return nil, nil
	case len(given) > 1:
		return nil, errors.New("fxmodule: the application provides a *sql.DB and a *sqlx.DB: want one of them")
	case len(given) == 0:
		return nil, fmt.Errorf("fxmodule: no database: set database.url (DATABASE_URL), or provide a *sql.DB or a *sqlx.DB (%s)", c.from)
	case extended != nil:
		return extended, nil
	}
	name, err := driverName(plain)
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(plain, name), nil
}

// driverName tells the databases apart by where a pool's driver was written.
func driverName(pool *sql.DB) (string, error) {
	t := reflect.TypeOf(pool.Driver())
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch path := t.PkgPath(); {
	case strings.Contains(path, "sqlite"):
		return "sqlite3", nil
	case strings.HasSuffix(path, "/pq"), strings.Contains(path, "/pgx"):
		return "postgres", nil
	}
	return "", fmt.Errorf("fxmodule: the *sql.DB has the driver %T, which tells nothing of its database: "+
		"provide a *sqlx.DB, sqlx.NewDb(db, \"postgres\") or sqlx.NewDb(db, \"sqlite3\")", pool.Driver())
}

func provideDB(d *database) (*schema.DB, error) { return d.DB, d.err }
