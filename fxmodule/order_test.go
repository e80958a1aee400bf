package fxmodule_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
)

// The saga of these tests: an order that is paid in time or not.

type (
	Ordered struct {
		Order string `json:"order"`
	}
	Paid struct {
		Order string `json:"order"`
	}
	Ship   struct{ Order string }
	Remind struct{ Order string }
)

type Order struct{ ID string }

const unpaid = "unpaid"

func (o *Order) OnOrdered(e Ordered, deadlines saga.Deadlines) {
	o.ID = e.Order
	deadlines.Schedule(unpaid, 30*time.Minute)
}

func (o *Order) OnPaid(_ Paid, commands saga.Commands) { commands.Send(Ship{o.ID}) }

func (o *Order) OnUnpaid(commands saga.Commands) { commands.Send(Remind{o.ID}) }

func orders() fx.Option {
	return fxmodule.Saga[Order]("order-saga",
		saga.Start((*Order).OnOrdered, saga.By("order")),
		saga.On((*Order).OnPaid, saga.By("order"), saga.Ends()),
		saga.OnDeadline(unpaid, (*Order).OnUnpaid, saga.Ends()),
	)
}

// shop handles the commands of orders.
func shop(j *journal) fx.Option {
	return fx.Options(
		fx.Supply(j),
		fxmodule.CommandHandler(func(_ context.Context, c Ship, j *journal) error { j.add("ship " + c.Order); return nil }),
		fxmodule.CommandHandler(func(_ context.Context, c Remind, j *journal, e *saga.Engine) error {
			j.add("remind " + c.Order)
			return nil
		}),
	)
}

func TestAWholeApplicationDoesItsWork(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		engine := run(t, address, orders(), shop(&j))
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o2"}))
		require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
		synctest.Wait()
		require.Equal(t, []string{"ship o1"}, j.list())
		time.Sleep(30*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, []string{"ship o1", "remind o2"}, j.list())
	})
}

func TestSweepAndFlushByHandNeedNoRunningPollerAndRelay(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		var p *poller.Poller
		var r *outbox.Relay
		engine := run(t, address, orders(), shop(&j), fx.Populate(&p, &r),
			fxmodule.Override("saga.deadline.polling.enabled", "false"),
			fxmodule.Override("saga.outbox.relay.enabled", "false"))
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, r.Flush(t.Context()))
		require.Empty(t, j.list())
		require.NoError(t, p.Sweep(t.Context()))
		require.Empty(t, j.list())
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"remind o1"}, j.list())
	})
}

func TestCase0124WithoutPollingRowsAreStoredAndNothingIsSwept(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		engine := run(t, address, orders(), fxmodule.Override("saga.deadline.polling.enabled", "false"))
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		pending, err := engine.Deadlines(t.Context(), saga.Key{Type: "order-saga", ID: "o1"})
		require.NoError(t, err)
		require.Len(t, pending, 1)
		require.Empty(t, leases(t, look(t, address)))
	})
}

func TestANodeThatCanDeliverNothingTakesNoLeaseForIt(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		run(t, address, orders())
		synctest.Wait()
		rows := leases(t, look(t, address))
		require.Len(t, rows, 1)
		require.NotContains(t, rows[0].Name, "/relay")
	})
}

func TestLeaseNameFollowsFromTheSagaTypes(t *testing.T) {
	names := func(t *testing.T, opts ...fx.Option) (names []string) {
		bubble(t, func(t *testing.T, address string) {
			var j journal
			run(t, address, shop(&j), fx.Options(opts...))
			synctest.Wait()
			names = nil
			for _, row := range leases(t, look(t, address)) {
				names = append(names, row.Name)
			}
		})
		require.Len(t, names, 2)
		require.Equal(t, names[0]+"/relay", names[1])
		return names
	}
	type Invoice struct{ ID string }
	invoices := fxmodule.Saga[Invoice]("invoice-saga", saga.Start(func(*Invoice, Ordered) {}, saga.By("order")))

	require.Equal(t, names(t, orders(), invoices), names(t, invoices, orders()))
	require.NotEqual(t, names(t, orders(), invoices), names(t, orders()))
	require.Equal(t, []string{"mine", "mine/relay"}, names(t, orders(), fxmodule.Override("saga.deadline.lease-name", "mine")))
}
