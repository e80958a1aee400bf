package fxmodule

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"
	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Check reports what would keep an application of opts from starting, as far as it shows without a database: settings,
// saga types, names and command handlers, all together; then the services that handlers want, all together; then what an
// fx.Invoke wants. [Module] may be among opts and is added otherwise. It is for tests, sagatest.Check among them.
//
// Constructors of the services that handlers want run, as they would when the application is made. No fx.Invoke and no
// hook runs, so nothing is started. The database that such a constructor gets from norn refuses all connections, and
// which one is configured does not matter.
func Check(opts ...fx.Option) error {
	opts = append([]fx.Option{fx.NopLogger, fx.RecoverFromPanics()}, opts...)
	if !hasModule(opts) {
		opts = append(opts, Module)
	}
	pool := sqlx.NewDb(sql.OpenDB(noDatabase{}), "postgres")
	defer func() { _ = pool.Close() }()
	db, err := schema.Wrap(pool)
	if err != nil {
		return err
	}
	opts = append(opts, fx.Replace(&database{DB: db, clock: schema.NewClock(db)}), fx.Decorate(registered.check))
	if err := first(opts, func(c *core, r *runners) error {
		if r.err == nil {
			c.engine.Close()
		}
		return r.err
	}); err != nil {
		return err
	}
	return fx.ValidateApp(opts...)
}

// Definitions are the saga types that opts register, in their order, and the names that they give to stored types, for
// tests of them without the application. Nothing runs but what [Saga] and [Names] themselves do.
func Definitions(opts ...fx.Option) (definitions []*saga.Definition, names []saga.Naming, err error) {
	var errs []error
	err = first(append([]fx.Option{fx.NopLogger}, opts...), func(in struct {
		fx.In
		Sagas []declared `group:"norn.declared"`
		Names []named    `group:"norn.names"`
	}) {
		slices.SortFunc(in.Sagas, func(a, b declared) int { return cmp.Compare(a.order, b.order) })
		for _, d := range in.Sagas {
			if errs = append(errs, d.check()); d.err == nil {
				definitions = append(definitions, d.definition)
			}
		}
		for _, n := range in.Names {
			names = append(names, n.namings...)
		}
	})
	return definitions, names, errors.Join(append(errs, err)...)
}

func hasModule(opts []fx.Option) bool {
	var found bool
	_ = first(opts, func(in struct {
		fx.In
		Module included `optional:"true"`
	}) {
		found = bool(in.Module)
	})
	return found
}

// errChecked keeps fx from going on when what was to be seen has been seen.
var errChecked = errors.New("fxmodule: checked")

// first makes an application of which nothing but invoke is invoked: modules come before the options around them, and
// the first before the others.
func first(opts []fx.Option, invoke any) error {
	app := fx.New(fx.Module("norn.check", fx.Invoke(invoke, func() error { return errChecked })), fx.Options(opts...))
	if err := app.Err(); err != nil && !errors.Is(err, errChecked) {
		return dig.RootCause(err)
	}
	return nil
}

// noDatabase is the driver of a database that nobody may open.
type noDatabase struct{}

var errNoDatabase = errors.New("fxmodule: Check opens no database")

func (noDatabase) Connect(context.Context) (driver.Conn, error) { return nil, errNoDatabase }
func (d noDatabase) Driver() driver.Driver                      { return d }
func (noDatabase) Open(string) (driver.Conn, error)             { return nil, errNoDatabase }
