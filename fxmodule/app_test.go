package fxmodule_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema/schematest"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
)

func orders() fx.Option {
	return fxmodule.Saga[Order]("order-saga",
		saga.Start((*Order).OnOrdered, saga.By("order")),
		saga.On((*Order).OnPaid, saga.By("order"), saga.Ends()),
		saga.OnDeadline(unpaid, (*Order).OnUnpaid, saga.Ends()),
	)
}

func TestAppDoesIt(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			synctest.Test(t, func(t *testing.T) {
				var engine *saga.Engine
				shipped := make(chan string, 10)
				reminded := make(chan string, 10)
				app := fx.New(
					fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
					fxmodule.Override("database.url", address),
					fxmodule.Override("saga.clock", "process"),
					fxmodule.Override("saga.wake.listen", "false"),
					orders(),
					fxmodule.CommandHandler(func(_ context.Context, s Ship) error { shipped <- s.Order; return nil }),
					fxmodule.CommandHandler(func(_ context.Context, s Remind, e *saga.Engine) error {
						require.NotNil(t, e)
						reminded <- s.Order
						return nil
					}),
					fx.Populate(&engine),
					fxmodule.Module,
				)
				require.NoError(t, app.Err())
				require.NoError(t, app.Start(t.Context()))
				require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
				require.NoError(t, engine.Handle(t.Context(), Ordered{"o2"}))
				require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
				synctest.Wait()
				require.Equal(t, "o1", <-shipped)
				time.Sleep(30 * time.Minute)
				synctest.Wait()
				require.Equal(t, "o2", <-reminded)
				require.Empty(t, shipped)
				require.NoError(t, app.Stop(t.Context()))
			})
		})
	}
}
