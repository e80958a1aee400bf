package fxmodule_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

type (
	Bank   interface{ Transfer(from, to string) }
	Ledger struct{ Bank string }
)

func nothing(context.Context, Ship) error { return nil }

func needsLedger(context.Context, Remind, *Ledger, Bank) error { return nil }

// refused is why an application does not come into being. It must not have left anything open.
func refused(opts ...fx.Option) error {
	return newApp("", opts...).Err()
}

func anyDatabase(t *testing.T) fx.Option {
	return fxmodule.Override("database.url", schematest.URL(t, "sqlite"))
}

func TestEveryMissingServiceIsNamedWithWhoWantsIt(t *testing.T) {
	golden(t, refused(anyDatabase(t),
		fxmodule.Saga[Order]("order-saga",
			saga.Start(func(*Order, Ordered, *Ledger) {}, saga.By("order")),
			saga.OnDeadline(unpaid, func(*Order, saga.Commands, Bank) {}),
		),
		fxmodule.CommandHandler(needsLedger),
	))
}

func TestAServiceWhoseOwnServiceIsMissingIsMissing(t *testing.T) {
	golden(t, refused(anyDatabase(t),
		fx.Provide(func(Bank) *Ledger { return nil }),
		fxmodule.Saga[Order]("order-saga", saga.Start(func(*Order, Ordered, *Ledger) {}, saga.By("order"))),
	))
}

func TestTwoValuesForOneTypeOfServiceAreRefused(t *testing.T) {
	north := func() *Ledger { return &Ledger{"north"} }
	orders := func(name string) fx.Option {
		return fx.Module(name, fx.Provide(north, fx.Private),
			fxmodule.Saga[Order](name, saga.Start(func(*Order, Ordered, *Ledger) {}, saga.By("order"))))
	}
	golden(t, refused(anyDatabase(t), orders("order-saga"), orders("return-saga")))
}

func TestAServiceThatFailsStopsTheStart(t *testing.T) {
	err := refused(anyDatabase(t),
		fx.Provide(func() (*Ledger, error) { return nil, errors.New("ledger: locked") }),
		fxmodule.Saga[Order]("order-saga", saga.Start(func(*Order, Ordered, *Ledger) {}, saga.By("order"))),
		fxmodule.CommandHandler(func(context.Context, Ship, *Ledger) error { return nil }),
	)
	require.ErrorContains(t, err, "ledger: locked")
}

func TestCase0122EveryMistakeIsNamedTogether(t *testing.T) {
	golden(t, refused(
		fxmodule.Override("saga.deadline.lease-ttl", "30s"),
		fxmodule.Override("saga.deadline.polling.batch-size", "0"),
		fxmodule.Saga[Order]("order-saga",
			saga.Start((*Order).OnOrdered, saga.By("order")),
			saga.OnDeadline(unpaid, (*Order).OnUnpaid),
			saga.OnDeadline(unpaid, func(*Order, saga.Metadata) {}),
		),
		fxmodule.Saga[Ledger]("", saga.Start(func(*Ledger, Ordered, *saga.Engine) {}, saga.By("order"))),
		fxmodule.Saga[Ledger]("ledger-saga", saga.Start(func(*Ledger, Ordered, *saga.Engine) {}, saga.By("order"))),
		fxmodule.Names(saga.Named[Ship]("order.Command"), saga.Named[Remind]("order.Command")),
		fxmodule.CommandHandler(nil),
		fxmodule.CommandHandler(func(context.Context, Ship) {}),
		fxmodule.CommandHandler(func(context.Context, Ship, Ledger, int) error { return nil }),
	))
}

func TestTwoSagaTypesOfOneNameAndTwoHandlersOfOneCommandAreRefused(t *testing.T) {
	golden(t, refused(anyDatabase(t), orders(), orders(), fxmodule.CommandHandler(nothing),
		fxmodule.CommandHandler(func(context.Context, Ship, *Ledger) error { return nil })))
}

func TestCase0124DisabledDeadlinesBesideADeclaredOneAreRefused(t *testing.T) {
	golden(t, refused(anyDatabase(t), orders(), fxmodule.Override("saga.deadline.enabled", "false")))
}

func TestMistakesComeBeforeWhateverTheApplicationInvokes(t *testing.T) {
	err := fx.New(quiet, fxmodule.ConfigFile(""), orders(),
		fx.Provide(func() *Ledger { panic("made") }),
		fx.Invoke(func(*saga.Engine, *Ledger) {}),
		fxmodule.Module,
	).Err()
	require.EqualError(t, err, "fxmodule: no database: set database.url (DATABASE_URL), or provide a *sql.DB or a *sqlx.DB "+
		"(no settings file: ConfigFile is empty)")
}

func TestNoDatabaseIsRefused(t *testing.T) { golden(t, refused(orders())) }

func TestTheErrorWithoutADatabaseSaysWhichSettingsWereRead(t *testing.T) {
	t.Chdir(t.TempDir())
	app := func() error { return dig.RootCause(fx.New(quiet, orders(), fxmodule.Module).Err()) }
	none := "fxmodule: no database: set database.url (DATABASE_URL), or provide a *sql.DB or a *sqlx.DB "
	require.EqualError(t, app(), none+"(no settings file: there is no norn.yaml in the working directory)")

	require.NoError(t, os.WriteFile("norn.yaml", nil, 0o600))
	require.EqualError(t, app(), none+"(settings file norn.yaml)")

	t.Setenv("NORN_CONFIG", "shop.yaml")
	require.ErrorContains(t, app(), "fxmodule: the settings file that NORN_CONFIG names: stat shop.yaml: no such file or directory")
}

func TestP25AnInMemoryDatabaseIsRefused(t *testing.T) {
	golden(t, refused(orders(), fxmodule.Override("database.url", "sqlite://:memory:")))
}

func TestTwoDatabasesAreRefused(t *testing.T) {
	pool, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "own.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	extended := sqlx.NewDb(pool, "sqlite3")
	t.Run("a URL and a pool", func(t *testing.T) {
		golden(t, refused(orders(), fx.Supply(pool), fxmodule.Override("database.url", "postgres://app:secret@db.example/shop")))
	})
	t.Run("two pools", func(t *testing.T) { golden(t, refused(orders(), fx.Supply(pool, extended))) })
}

func TestTwoSinksAreRefused(t *testing.T) {
	sink := outbox.SinkFunc(func(context.Context, outbox.Command) error { return nil })
	golden(t, refused(anyDatabase(t), orders(), fxmodule.Sink(sink), fxmodule.Sink(func() outbox.Sink { return sink })))
}

func TestTwoConfigFilesAreRefused(t *testing.T) {
	golden(t, refused(orders(), fxmodule.ConfigFile("a.yaml")))
}

func TestWhatIsNoInterceptorOrSinkIsRefused(t *testing.T) {
	for name, option := range map[string]fx.Option{
		"interceptor":         fxmodule.Interceptor(func(string) string { return "" }),
		"command interceptor": fxmodule.CommandInterceptor("around"),
		"sink":                fxmodule.Sink(nil),
	} {
		t.Run(name, func(t *testing.T) { golden(t, refused(anyDatabase(t), orders(), option)) })
	}
}

func TestMissingTablesStopTheStartWhenTheyAreNotToBeCreated(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		app := newApp(address, orders(), fxmodule.Override("saga.deadline.schema.auto", "false"))
		require.NoError(t, app.Err())
		err := app.Start(t.Context())
		require.ErrorIs(t, err, schema.ErrMissing)
		require.ErrorContains(t, err, "run `norn schema up --database ")

		schematest.Open(t, address)
		again := newApp(address, orders(), fxmodule.Override("saga.deadline.schema.auto", "false"))
		start(t, again)
		stop(t, again)
	})
}

func TestAnUnreachableDatabaseStopsTheStartWithoutItsPassword(t *testing.T) {
	err := refused(orders(), fxmodule.Override("database.url", "postgres://app:secret@127.0.0.1:1/shop?connect_timeout=1"))
	require.ErrorContains(t, err, "postgres://app:xxxxx@127.0.0.1:1/shop")
	require.NotContains(t, err.Error(), "secret")
}

func TestSettingsOfTheApplicationThatAreWrongStopTheStart(t *testing.T) {
	type payment struct{ Timeout time.Duration }
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte("payment:\n  timeout: 30\n"), 0o600))
	err := fx.New(quiet, fxmodule.ConfigFile(file), fxmodule.Module, anyDatabase(t),
		fx.Provide(config.Section[payment]("payment")),
		fxmodule.Saga[Order]("order-saga", saga.Start(func(*Order, Ordered, *payment) {}, saga.By("order"))),
	).Err()
	require.ErrorContains(t, err, "payment.timeout")
}
