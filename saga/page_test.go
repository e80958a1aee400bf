package saga_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// What docs/sagas.md shows stands here, word for word.

type OrderPlaced struct {
	OrderID  string `json:"orderId"`
	Customer string `json:"customer"`
}

type PaymentReceived struct {
	OrderID string `json:"orderId"`
	By      string
}

type ParcelScanned struct {
	Parcel struct {
		Number string `json:"number"`
	} `json:"parcel"`
}

type SendReminder struct{ Customer, Text string }

type ShipOrder struct{ OrderID string }

type Reminder struct{ Text string }

type Order struct {
	OrderID, Customer, Tenant string
	Reminders                 int
}

const (
	reminder = "reminder"
	giveUp   = "give-up"
)

func (o *Order) OnPlaced(e OrderPlaced, metadata saga.Metadata, deadlines saga.Deadlines) {
	o.OrderID, o.Customer, o.Tenant = e.OrderID, e.Customer, metadata["tenant"]
	deadlines.Schedule(reminder, 24*time.Hour, deadline.WithPayload(Reminder{"your order waits"}))
	deadlines.Schedule(giveUp, 14*24*time.Hour)
}

func (o *Order) OnReminder(r Reminder, firing saga.Firing, commands saga.Commands, deadlines saga.Deadlines) {
	o.Reminders++
	commands.Send(SendReminder{o.Customer, r.Text})
	deadlines.ScheduleAt(reminder, firing.Due.Add(48*time.Hour), deadline.WithPayload(r))
}

func (o *Order) OnPaid(e PaymentReceived, stock Stock, commands saga.Commands, deadlines saga.Deadlines, associations saga.Associations) error {
	parcel, err := stock.Pack(o.OrderID)
	if err != nil {
		return err
	}
	associations.Add("parcel/number", parcel)
	deadlines.Cancel(reminder)
	deadlines.Cancel(giveUp)
	commands.Send(ShipOrder{o.OrderID}, saga.WithMetadata(saga.Metadata{"tenant": o.Tenant}))
	return nil
}

func (o *Order) OnScanned(context.Context, ParcelScanned) {}

func (o *Order) OnGiveUp(ctx context.Context, tx saga.Tx) error {
	_, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM reserved_stock WHERE order_id = ?"), o.OrderID)
	return err
}

// Stock is a service of the application.
type Stock interface {
	Pack(orderID string) (parcel string, err error)
}

func orders() (*saga.Definition, error) {
	return saga.Define[Order]("order",
		saga.Start((*Order).OnPlaced, saga.By("orderId")),
		saga.On((*Order).OnPaid, saga.By("orderId")),
		saga.On((*Order).OnScanned, saga.By("parcel/number"), saga.Ends()),
		saga.OnDeadline(reminder, (*Order).OnReminder),
		saga.OnDeadline(giveUp, (*Order).OnGiveUp, saga.Ends()),
	)
}

type stockOfThePage struct{}

func (stockOfThePage) Pack(orderID string) (string, error) { return "parcel-of-" + orderID, nil }

func TestOrderOfThePageIsRemindedPaidAndScanned(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		definition, err := orders()
		require.NoError(t, err)
		_, err = db.DB.Exec("CREATE TABLE reserved_stock (order_id varchar(20))")
		require.NoError(t, err)
		engine := newEngine(t, db, saga.Config{Service: saga.Services(stockOfThePage{})}, definition)
		ctx, key := t.Context(), saga.Key{Type: "order", ID: "o1"}
		for _, id := range []string{"o1", "o2"} {
			placed := OrderPlaced{OrderID: id, Customer: "Ann"}
			err = engine.Handle(ctx, placed, saga.WithID("order-placed-"+id), saga.WithMetadata(saga.Metadata{"tenant": "blue"}))
			require.NoError(t, err)
		}
		time.Sleep(3 * 24 * time.Hour)
		fired, errs := sweep(t, db, engine)
		require.Equal(t, 2, fired)
		require.Empty(t, errs)
		require.NoError(t, engine.Handle(ctx, PaymentReceived{OrderID: "o1"}))
		pending, err := engine.Deadlines(ctx, key)
		require.NoError(t, err)
		require.Empty(t, pending)
		var scanned ParcelScanned
		scanned.Parcel.Number = "parcel-of-o1"
		require.NoError(t, engine.Handle(ctx, scanned))
		order, err := engine.Instance(ctx, key)
		require.NoError(t, err)
		require.True(t, order.Ended)
		time.Sleep(14 * 24 * time.Hour)
		for range 2 {
			_, errs = sweep(t, db, engine)
			require.Empty(t, errs)
		}
		given, err := engine.Instance(ctx, saga.Key{Type: "order", ID: "o2"})
		require.NoError(t, err)
		require.True(t, given.Ended)
		require.Equal(t, []string{"saga_test.SendReminder", "saga_test.SendReminder", "saga_test.ShipOrder"}, commandTypes(t, db)[:3])
	})
}

// moveParked is what docs/operations.md shows.
func moveParked(ctx context.Context, engine *saga.Engine, mended func(saga.Parked) bool) error {
	for parked, err := range engine.Parked(ctx, saga.Query{Type: "order"}) {
		if err != nil {
			return err
		}
		fmt.Println(parked.Saga, parked.Kind, parked.Name, parked.Attempts, parked.LastError)
		if mended(parked) {
			err = engine.Retry(ctx, parked)
		} else {
			err = engine.Discard(ctx, parked, "the customer was called")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestParkedWorkOfThePageIsMoved(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		definition, err := orders()
		require.NoError(t, err)
		engine := newEngine(t, db, saga.Config{Service: saga.Services(stockOfThePage{})}, definition)
		for _, id := range []string{"o1", "o2"} {
			require.NoError(t, engine.Handle(t.Context(), OrderPlaced{OrderID: id}))
		}
		_, err = db.Exec(t.Context(), "UPDATE {deadline} SET parked_at = {now}, last_error = 'no' WHERE name = 'reminder'")
		require.NoError(t, err)
		require.NoError(t, moveParked(t.Context(), engine, func(p saga.Parked) bool { return p.Saga.ID == "o1" }))
		for id, left := range map[string]int{"o1": 2, "o2": 1} {
			pending, err := engine.Deadlines(t.Context(), saga.Key{Type: "order", ID: id})
			require.NoError(t, err)
			require.Len(t, pending, left, id)
			require.True(t, pending[0].ParkedAt.IsZero())
		}
	})
}
