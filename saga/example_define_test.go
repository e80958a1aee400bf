package saga_test

import (
	"context"
	"fmt"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

func ExampleDefine() {
	d, err := saga.Define[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId")),
		saga.On((*Purchase).OnPaid, saga.By("orderId")),
		saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing, saga.Ends()),
	)
	fmt.Println(d.Name(), d.Deadlines(), err)

	_, err = saga.Define[Purchase]("order",
		saga.Start((*Purchase).OnPlaced),
		saga.OnDeadline(unpaid, (*Purchase).OnPaid, saga.By("orderId")),
	)
	fmt.Println(err)
	// Output:
	// order [unpaid] <nil>
	// saga: order: start saga_test.(*Purchase).OnPlaced: no association: add saga.By(…)
	// saga: order: deadline unpaid saga_test.(*Purchase).OnPaid: saga.By belongs on an event handler: a deadline knows its saga
}

func ExampleStart() {
	d := saga.MustDefine[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId")), saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing))
	run(d, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, PurchaseMade{"o1", 20})) // the saga is there: ignored
		show(ctx, e, "o1")
	})
	// Output: order/o1 ended=false {"Total":10,"Paid":false}
}

func ExampleOn() {
	run(purchases, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, PurchasePaid{"o1"}))
		check(e.Handle(ctx, PurchasePaid{"unknown"})) // no saga: ignored
		show(ctx, e, "o1")
	})
	// Output: order/o1 ended=false {"Total":10,"Paid":true}
}

func ExampleOnDeadline() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		pending := must(e.Deadlines(ctx, saga.Key{Type: "order", ID: "o1"}))
		fmt.Println(pending[0].Name)
		must(e.FireNow(ctx, pending[0].PublicID)) // instead of waiting for an hour
		fire(ctx, db, e)
		show(ctx, e, "o1")
	})
	// Output:
	// unpaid
	// order/o1 ended=true {"Total":10,"Paid":false}
}

func ExampleOnFunc() {
	type Discounted struct {
		OrderID string `json:"orderId"`
		By      int
	}
	d := saga.MustDefine[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId")), saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing),
		saga.OnFunc(func(ctx context.Context, o *Purchase, e Discounted, in saga.Injected) error {
			o.Total -= e.By
			in.Commands.Send(CancelPurchase{"an invoice of another total"})
			return nil
		}, saga.By("orderId")),
	)
	run(d, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, Discounted{"o1", 3}))
		show(ctx, e, "o1")
	})
	// Output: order/o1 ended=false {"Total":7,"Paid":false}
}

func ExampleBy() {
	type Parcel struct{ Lines []struct{ OrderID string } }
	d := saga.MustDefine[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId")), saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing),
		saga.On(func(o *Purchase, _ Parcel, associations saga.Associations) { o.Paid = true }, saga.By("lines/orderId")),
		saga.On(func(o *Purchase, _ PurchasePaid, associations saga.Associations) {
			associations.Add("lines/orderId", "o1") // from now on parcels find the order
		}, saga.By("orderId")),
	)
	run(d, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		parcel := Parcel{Lines: []struct{ OrderID string }{{"o0"}, {"o1"}}}
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, parcel))
		show(ctx, e, "o1")
		check(e.Handle(ctx, PurchasePaid{"o1"}))
		check(e.Handle(ctx, parcel))
		show(ctx, e, "o1")
	})
	// Output:
	// order/o1 ended=false {"Total":10,"Paid":false}
	// order/o1 ended=false {"Total":10,"Paid":true}
}

func ExampleEnds() {
	d := saga.MustDefine[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId")), saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing),
		saga.On((*Purchase).OnPaid, saga.By("orderId"), saga.Ends()),
	)
	run(d, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, PurchasePaid{"o1"}))
		check(e.Handle(ctx, PurchasePaid{"o1"})) // it has ended: ignored
		show(ctx, e, "o1")
		fmt.Println(e.Stats().Ignored)
	})
	// Output:
	// order/o1 ended=true {"Total":10,"Paid":true}
	// 1
}

func ExampleAgain() {
	d := saga.MustDefine[Purchase]("order",
		saga.Start((*Purchase).OnPlaced, saga.By("orderId"), saga.Again()), saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing),
		saga.On((*Purchase).OnPaid, saga.By("orderId"), saga.Ends()),
	)
	run(d, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}, saga.WithID("first")))
		check(e.Handle(ctx, PurchasePaid{"o1"}))
		check(e.Handle(ctx, PurchaseMade{"o1", 10}, saga.WithID("first"))) // a redelivery begins nothing
		show(ctx, e, "o1")
		check(e.Handle(ctx, PurchaseMade{"o1", 20}, saga.WithID("second")))
		show(ctx, e, "o1")
	})
	// Output:
	// order/o1 ended=true {"Total":10,"Paid":true}
	// order/o1 ended=false {"Total":20,"Paid":false}
}
