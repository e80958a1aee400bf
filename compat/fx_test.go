package compat_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	_ "pgregory.net/rapid" // norn's own tests use it

	"github.com/norn-go/norn/compat"
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

func TestApplicationBringsAPoolOfAnotherDriver(t *testing.T) {
	for _, database := range schematest.Databases {
		t.Run(database, func(t *testing.T) {
			name, dsn, err := compat.Source(schematest.URL(t, database))
			require.NoError(t, err)
			pool, err := sql.Open(name, dsn)
			require.NoError(t, err)
			reminded := make(chan string, 1) // one: the saga sends one command
			var engine *saga.Engine
			app := fx.New(fx.NopLogger, fxmodule.ConfigFile(""), fx.Supply(pool), fxmodule.Module, fx.Populate(&engine),
				fxmodule.Saga[Order]("order",
					saga.Start((*Order).OnOrdered, saga.By("order")),
					saga.OnDeadline("payment", (*Order).OnUnpaid, saga.Ends()),
				),
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
