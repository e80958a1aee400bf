package fxmodule_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestADatabaseOfTheApplicationStaysOpen(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		pool := look(t, address).DB
		for name, database := range map[string]fx.Option{"a sql.DB": fx.Supply(pool.DB), "a sqlx.DB": fx.Supply(pool)} {
			t.Run(name, func(t *testing.T) {
				var engine *saga.Engine
				var db *schema.DB
				app := newApp("", orders(), database, fx.Populate(&engine, &db))
				start(t, app)
				require.NoError(t, engine.Handle(t.Context(), Ordered{name}))
				require.Same(t, pool.DB, db.DB.DB)
				stop(t, app)
				require.NoError(t, pool.Ping())
			})
		}
	})
}

func TestAPoolWithoutRoomForTheLeasesIsRefused(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		pool := look(t, address).DB
		for open, well := range map[int]bool{1: false, 3: false, 4: true} {
			pool.SetMaxOpenConns(open)
			if !well {
				require.ErrorContains(t, refused(orders(), fx.Supply(pool)), "at most "+fmt.Sprint(open)+" connections")
				continue
			}
			var engine *saga.Engine
			app := newApp("", orders(), fx.Supply(pool), fx.Populate(&engine))
			start(t, app)
			require.NoError(t, engine.Handle(t.Context(), Ordered{"1"}))
			stop(t, app)
		}
	})
}

type unknownDriver struct{ driver.Driver }

func TestADriverThatTellsNothingOfItsDatabaseIsRefused(t *testing.T) {
	pool := sql.OpenDB(connector{})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	golden(t, refused(orders(), fx.Supply(pool)))
}

type connector struct{ driver.Connector }

func (connector) Driver() driver.Driver { return unknownDriver{} }

func TestAServiceMayUseTheDatabaseOfNorn(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		var got *sqlx.DB
		run(t, address,
			fx.Provide(func(db *schema.DB) *Ledger { got = db.DB; return &Ledger{} }),
			fxmodule.Saga[Order]("order-saga", saga.Start(func(*Order, Ordered, *Ledger) {}, saga.By("order"))))
		require.NoError(t, got.Ping())
	})
}

func TestTableNamesOfTheSettingsAreThoseOfTheTables(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		n := config.Default().Schema.Names()
		named, err := schema.Wrap(db.DB, schema.WithNames(schema.Names{
			Instance: n.Instance, Association: n.Association, Deadline: n.Deadline, DeadlineLock: n.DeadlineLock,
			Command: n.Command, Event: n.Event, History: n.History,
		}))
		require.NoError(t, err)
		require.NoError(t, schema.Check(t.Context(), named))
	})
}

func TestCommandsThatNobodyDeliversAreWarnedOfOnce(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		for want, options := range [][]fx.Option{
			{fxmodule.Override("saga.outbox.relay.enabled", "false"), fxmodule.CommandHandler(nothing)},
			{fx.Options()},
		} {
			for _, option := range options {
				var log bytes.Buffer
				app := newApp(address, orders(), option, fx.Decorate(func() *slog.Logger { return slog.New(slog.NewTextHandler(&log, nil)) }))
				start(t, app)
				stop(t, app)
				require.Equal(t, want, strings.Count(log.String(), `level=WARN msg="fxmodule: no command handler and no sink: commands are stored and not delivered here;`), log.String())
			}
		}
	})
}

func TestSettingsAndMisspeltVariablesAreLoggedWithoutSecrets(t *testing.T) {
	t.Setenv("SAGA_WORKER", "7")
	var log bytes.Buffer
	pool := look(t, "sqlite://"+t.TempDir()+"/own.db")
	app := fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(slog.New(slog.NewTextHandler(&log, nil)), pool.DB),
		fxmodule.ConfigFile(""), orders(), fxmodule.Module,
	)
	start(t, app)
	stop(t, app)
	require.Contains(t, log.String(), `msg="fxmodule: settings" from="no settings file: ConfigFile is empty"`)
	require.Contains(t, log.String(), "settings.saga.deadline.polling.interval=30s")
	require.Contains(t, log.String(), "SAGA_WORKER belongs to no setting")
}
