package fxmodule

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// checked is what the application registered, found right as far as it can be told without running anything.
type checked struct {
	source      *config.Source
	from        string // where the settings file is from, or why there is none
	config      config.Config
	definitions []*saga.Definition
	namings     []saga.Naming
	given       *sqlx.DB // the application's database; nil: norn opens one
}

// registered is what the application gave to this package.
type registered struct {
	fx.In
	Settings *settings
	Node     *node            // made first: see newNode
	Sagas    []declared       `group:"norn.declared"`
	Commands []commandHandler `group:"norn.commands"`
	Names    []named          `group:"norn.names"`
}

type checkIn struct {
	fx.In
	Registered registered
	SQL        *sql.DB  `optional:"true"`
	SQLX       *sqlx.DB `optional:"true"`
}

// verdict is checked, or all mistakes at once: those of settings, saga types, names and command handlers, and of the
// database. It is no constructor's error, to which fx would add the way to it through the graph.
type verdict struct {
	checked *checked
	err     error
}

func check(in checkIn) verdict {
	c, err := in.Registered.check()
	if in.Registered.Settings.err != nil {
		return verdict{c, err}
	}
	given, choice := c.choose(in.SQL, in.SQLX)
	c.given = given
	return verdict{c, errors.Join(err, choice)}
}

func provideChecked(v verdict) (*checked, error) { return v.checked, v.err }

// check reports all mistakes that have nothing to do with the database.
func (in registered) check() (*checked, error) {
	slices.SortFunc(in.Sagas, func(a, b declared) int { return cmp.Compare(a.order, b.order) })
	slices.SortFunc(in.Commands, func(a, b commandHandler) int { return cmp.Compare(a.order, b.order) })
	slices.SortFunc(in.Names, func(a, b named) int { return cmp.Compare(a.order, b.order) })

	c := &checked{source: in.Settings.source, from: in.Settings.from, config: in.Settings.config}
	errs := []error{in.Settings.err}
	for _, d := range in.Sagas {
		errs = append(errs, d.check())
		if d.err == nil {
			c.definitions = append(c.definitions, d.definition)
		}
	}
	for _, n := range in.Names {
		c.namings = append(c.namings, n.namings...)
	}
	errs = append(errs, c.rehearse(in.Commands))
	if in.Settings.err == nil {
		errs = append(errs, c.checkEnabled())
	}
	return c, errors.Join(errs...)
}

// rehearse makes engine and router without a database and with stand-ins for all services, for the mistakes they find.
func (c *checked) rehearse(commands []commandHandler) error {
	var errs []error
	var handlers []any
	for _, h := range commands {
		if h.err != nil {
			errs = append(errs, h.err)
			continue
		}
		handlers = append(handlers, h.plain(nil))
	}
	types, err := c.rehearseSagas()
	errs = append(errs, err)
	_, err = outbox.NewRouter(types, handlers...)
	return errors.Join(append(errs, err)...)
}

// rehearseSagas returns the stored types, those of the command handlers alone if the saga types do not go together.
func (c *checked) rehearseSagas() (*saga.Types, error) {
	standIn := func(t reflect.Type) (any, bool) { return t, true }
	engine, err := saga.New(nil, saga.Config{Names: c.namings, Service: standIn, Logger: slog.New(slog.DiscardHandler)}, c.definitions...)
	if err == nil {
		engine.Close()
		return engine.Types(), nil
	}
	types, _ := saga.NewTypes(saga.JSON{})
	return types, err
}

func (c *checked) checkEnabled() error {
	if c.config.Deadline.Enabled {
		return nil
	}
	var errs []error
	for _, d := range c.definitions {
		if names := d.Deadlines(); len(names) > 0 {
			errs = append(errs, fmt.Errorf("fxmodule: saga.deadline.enabled is false, but %s declares the deadlines %s: take them out, "+
				"or leave deadlines enabled and set saga.deadline.polling.enabled to false, so that another node fires them",
				d.Name(), strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}
