package sagatest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

// What docs/testing.md shows stands here and in transfer_test.go, word for word.

type OrderPlaced struct {
	OrderID string `json:"orderId"`
}

type OrderPaid struct {
	OrderID string `json:"orderId"`
}

type ShipOrder struct{ OrderID, Parcel string }

type SendReminder struct{ Text string }

type Reminder struct{ Text string }

// Stock is a service of the application.
type Stock interface {
	Pack(orderID string) (parcel string, err error)
}

type ShopOrder struct{ OrderID, Parcel string }

func (o *ShopOrder) OnPlaced(e OrderPlaced, deadlines saga.Deadlines) {
	o.OrderID = e.OrderID
	deadlines.Schedule("reminder", 24*time.Hour, deadline.WithPayload(Reminder{"your order waits"}))
	deadlines.Schedule("give-up", 14*24*time.Hour)
}

func (o *ShopOrder) OnPaid(_ OrderPaid, stock Stock, commands saga.Commands, deadlines saga.Deadlines) (err error) {
	if o.Parcel, err = stock.Pack(o.OrderID); err != nil {
		return err
	}
	deadlines.Cancel("reminder")
	deadlines.Cancel("give-up")
	commands.Send(ShipOrder{o.OrderID, o.Parcel})
	return nil
}

func (o *ShopOrder) OnReminder(r Reminder, commands saga.Commands, deadlines saga.Deadlines) {
	commands.Send(SendReminder{r.Text})
	deadlines.Schedule("reminder", 48*time.Hour, deadline.WithPayload(r))
}

func (o *ShopOrder) OnGiveUp() {}

var order = []saga.Option{
	saga.Start((*ShopOrder).OnPlaced, saga.By("orderId")),
	saga.On((*ShopOrder).OnPaid, saga.By("orderId")),
	saga.OnDeadline("reminder", (*ShopOrder).OnReminder),
	saga.OnDeadline("give-up", (*ShopOrder).OnGiveUp, saga.Ends()),
}

var errSoldOut = errors.New("sold out")

// shelf is a Stock for tests.
type shelf struct{ parcels int }

func (s *shelf) Pack(orderID string) (string, error) {
	if s.parcels == 0 {
		return "", errSoldOut
	}
	s.parcels--
	return "parcel-of-" + orderID, nil
}

func TestOrderIsShippedOncePaid(t *testing.T) {
	sagatest.Test(t, "order", func(f *sagatest.Fixture[ShopOrder]) {
		f.GivenState("o1", ShopOrder{OrderID: "o1"})
		f.GivenDeadline("give-up", 3*time.Hour)
		f.When(OrderPaid{"o1"}, saga.WithID("payment-1"))
		f.ExpectCommands(ShipOrder{"o1", "parcel-of-o1"})
		f.ExpectCancelled("give-up")
		f.ExpectState(ShopOrder{OrderID: "o1", Parcel: "parcel-of-o1"})

		f.When(OrderPaid{"o1"}, saga.WithID("payment-1")) // delivered again
		f.ExpectNothing()
	}, order, sagatest.Provide(func() Stock { return &shelf{parcels: 1} }), sagatest.OnBoth())
}

func TestOrderWaitsWhileSoldOut(t *testing.T) {
	sagatest.Test(t, "order", func(f *sagatest.Fixture[ShopOrder]) {
		f.Given(OrderPlaced{"o1"})
		f.When(OrderPaid{"o1"})
		f.ExpectErrorIs(errSoldOut)
		f.ExpectNoCommands()
		f.ExpectDeadline(sagatest.After("give-up", 14*24*time.Hour))
	}, order, sagatest.Provide(&shelf{}))
}

func TestCustomerIsRemindedUntilTheOrderIsGivenUp(t *testing.T) {
	sagatest.Test(t, "order", func(f *sagatest.Fixture[ShopOrder]) {
		f.Given(OrderPlaced{"o1"}, OrderPlaced{"o2"})
		f.WhenTimePasses(24 * time.Hour)
		f.Saga("o1").ExpectCommands(SendReminder{"your order waits"})
		f.Saga("o1").ExpectOnlyNewDeadlines(
			sagatest.After("reminder", 48*time.Hour, deadline.WithPayload(Reminder{"your order waits"})))

		f.WhenRestarted()
		f.WhenTimeAdvancesTo(time.Date(2000, 1, 15, 0, 0, 0, 0, time.UTC))
		f.Saga("o2").ExpectCancelled("reminder")
		f.Saga("o2").ExpectEnded()
		f.Saga("o2").ExpectOnlyDeadlines()
	}, order, sagatest.Provide(&shelf{}))
}

func TestOrderIsGivenToTheCarrier(t *testing.T) {
	var shipped []string
	carrier := func(_ context.Context, c ShipOrder) error {
		shipped = append(shipped, c.Parcel)
		return nil
	}
	sagatest.Test(t, "order", func(f *sagatest.Fixture[ShopOrder]) {
		f.Given(OrderPlaced{"o1"}, OrderPaid{"o1"})
		f.WhenCommandsDelivered()
		require.Equal(f.T(), []string{"parcel-of-o1"}, shipped)
	}, order, sagatest.Provide(&shelf{parcels: 1}), sagatest.CommandHandler(carrier))
}

// carrier knows parcels by the ids of the commands that brought them.
type carrier struct{ parcels map[string]string }

func (c *carrier) ship(ctx context.Context, s ShipOrder) error {
	c.parcels[outbox.DeliveryFrom(ctx).ID] = s.Parcel
	return nil
}

func TestOrderIsTheSameWhereverItsProcessDies(t *testing.T) {
	carrier := &carrier{}
	sagatest.Crash(t, "order", func(f *sagatest.Fixture[ShopOrder]) {
		carrier.parcels = map[string]string{}
		f.Given(OrderPlaced{"o1"})
		f.WhenTimePasses(24 * time.Hour)
		f.When(OrderPaid{"o1"})
		f.WhenCommandsDelivered()
		f.Observe("parcels", len(carrier.parcels))
	}, order, sagatest.Provide(func() Stock { return &shelf{parcels: 2} }), sagatest.CommandHandler(carrier.ship))
}

var Shop = fx.Module("shop",
	fx.Provide(func() Stock { return &shelf{parcels: 1000} }),
	fxmodule.Saga[ShopOrder]("order", order...),
	fxmodule.CommandHandler(func(context.Context, ShipOrder) error { return nil }),
)

func TestShopIsWired(t *testing.T) {
	sagatest.Check(t, Shop)
}
