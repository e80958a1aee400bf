package saga_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

func ExampleEngine_Handle() {
	run(purchases, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		check(e.Handle(ctx, PurchasePaid{"o1"}, saga.WithID("payment-7")))
		check(e.Handle(ctx, PurchasePaid{"o1"}, saga.WithID("payment-7"))) // a redelivery: seen before
		fmt.Println(e.Handle(ctx, PurchasePaid{"o1"}, saga.WithID("payment-8")))
		fmt.Println(e.Stats().Handled, e.Stats().Duplicates)
	})
	// Output:
	// saga: handle saga_test.PurchasePaid: order/o1: paid twice
	// 2 1
}

func ExampleEngine_HandleTx() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		tx := must(db.BeginTx(ctx, nil))
		check(e.HandleTx(ctx, tx, PurchaseMade{"o1", 10}))
		check(tx.Rollback())
		_, err := e.Instance(ctx, saga.Key{Type: "order", ID: "o1"})
		fmt.Println(err)

		tx = must(db.BeginTx(ctx, nil))
		check(e.HandleTx(ctx, tx, PurchaseMade{"o1", 10}))
		check(tx.Commit())
		e.Wake() // the poller looks at what was scheduled
		show(ctx, e, "o1")
	})
	// Output:
	// saga: order/o1: saga not found
	// order/o1 ended=false {"Total":10,"Paid":false}
}

func ExampleEngine_Instance() {
	run(purchases, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		got, err := e.Instance(ctx, saga.Key{Type: "order", ID: "o1"})
		fmt.Println(got.ID, got.Version, got.Ended, string(got.State), err)
		_, err = e.Instance(ctx, saga.Key{Type: "order", ID: "o2"})
		fmt.Println(errors.Is(err, saga.ErrNotFound))
	})
	// Output:
	// o1 1 false {"Total":10,"Paid":false} <nil>
	// true
}

func ExampleEngine_Instances() {
	run(purchases, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		for _, id := range []string{"o3", "o1", "o2"} {
			check(e.Handle(ctx, PurchaseMade{id, 10}))
		}
		for got, err := range e.Instances(ctx, saga.Query{Type: "order", Status: saga.Live}) {
			check(err)
			fmt.Println(got.Key)
		}
	})
	// Output:
	// order/o1
	// order/o2
	// order/o3
}

func ExampleEngine_CancelDeadline() {
	run(purchases, func(ctx context.Context, _ *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		id := must(e.Deadlines(ctx, saga.Key{Type: "order", ID: "o1"}))[0].PublicID
		fmt.Println(e.CancelDeadline(ctx, id))
		fmt.Println(e.CancelDeadline(ctx, id))
	})
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleEngine_FireNow() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		id := must(e.Deadlines(ctx, saga.Key{Type: "order", ID: "o1"}))[0].PublicID
		fmt.Println(e.FireNow(ctx, id))
		fire(ctx, db, e)
		show(ctx, e, "o1")
	})
	// Output:
	// true <nil>
	// order/o1 ended=true {"Total":10,"Paid":false}
}

// park lets the order's deadline fail for good, as a poller does after the last attempt.
func park(ctx context.Context, db *schema.DB, e *saga.Engine) {
	must(e.FireNow(ctx, must(e.Deadlines(ctx, saga.Key{Type: "order", ID: "o1"}))[0].PublicID))
	store := deadline.NewStore(db)
	due := must(store.Find(ctx, deadline.Sweep{Kinds: e.Kinds(), Cutoff: e.Now(), Limit: 1}))
	must(store.Fail(ctx, due[0], errors.New("no courier"), e.Now(), true))
}

func ExampleEngine_Parked() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		park(ctx, db, e)
		for p, err := range e.Parked(ctx, saga.Query{}) {
			check(err)
			fmt.Println(p.Kind, p.Saga, p.Name, p.Attempts, p.LastError)
		}
	})
	// Output: deadline order/o1 unpaid 1 no courier
}

func ExampleEngine_Retry() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		park(ctx, db, e)
		for p, err := range e.Parked(ctx, saga.Query{}) {
			check(err)
			fmt.Println(e.Retry(ctx, p))
			fmt.Println(e.Retry(ctx, p))
		}
		fire(ctx, db, e)
		show(ctx, e, "o1")
	})
	// Output:
	// <nil>
	// saga: retry deadline unpaid of order/o1: no longer parked
	// order/o1 ended=true {"Total":10,"Paid":false}
}

func ExampleEngine_Discard() {
	run(purchases, func(ctx context.Context, db *schema.DB, e *saga.Engine) {
		check(e.Handle(ctx, PurchaseMade{"o1", 10}))
		park(ctx, db, e)
		for p, err := range e.Parked(ctx, saga.Query{}) {
			check(err)
			check(e.Discard(ctx, p, "the order was paid in cash"))
		}
		fmt.Println(len(must(e.Deadlines(ctx, saga.Key{Type: "order", ID: "o1"}))))
		show(ctx, e, "o1")
	})
	// Output:
	// 0
	// order/o1 ended=false {"Total":10,"Paid":false}
}
