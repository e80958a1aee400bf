package compat_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	_ "pgregory.net/rapid" // norn's own tests use it

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema/schematest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	Ordered struct{ Order string }
	Remind  struct{ Order string }
	Order   struct{ ID string }
)

func (o *Order) OnOrdered(e Ordered, deadlines saga.Deadlines) {
	o.ID = e.Order
	deadlines.Schedule("payment", time.Millisecond)
}

func (o *Order) OnUnpaid(commands saga.Commands) { commands.Send(Remind{o.ID}) }

var orders = fxmodule.Saga[Order]("order",
	saga.Start((*Order).OnOrdered, saga.By("order")),
	saga.OnDeadline("payment", (*Order).OnUnpaid, saga.Ends()),
)

func TestApplicationBringsAPoolOfAnotherDriver(t *testing.T) {
	for name, open := range map[string]func() (*sql.DB, error){
		"pgx": func() (*sql.DB, error) { return openPgx(schematest.URL(t, "postgres")) },
		"pgxpool": func() (*sql.DB, error) {
			pool, err := pgxpool.New(t.Context(), schematest.URL(t, "postgres"))
			if err != nil {
				return nil, err
			}
			t.Cleanup(pool.Close)
			return stdlib.OpenDBFromPool(pool), nil
		},
		"modernc": func() (*sql.DB, error) { return openModernc(filepath.Join(t.TempDir(), "norn.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := open()
			require.NoError(t, err)
			reminded := make(chan string, 1) // one: the saga sends one command
			var engine *saga.Engine
			app := fx.New(fx.NopLogger, fxmodule.ConfigFile(""), fx.Supply(pool), fxmodule.Module, orders, fx.Populate(&engine),
				fxmodule.CommandHandler(func(_ context.Context, c Remind) error { reminded <- c.Order; return nil }),
			)
			require.NoError(t, app.Start(t.Context()))
			require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
			require.Equal(t, "o1", <-reminded)
			require.NoError(t, app.Stop(t.Context()))
			require.NoError(t, pool.PingContext(t.Context()))
			require.NoError(t, pool.Close())
		})
	}
}
