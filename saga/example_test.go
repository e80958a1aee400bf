package saga_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Purchase waits for its payment.
type Purchase struct {
	Total int
	Paid  bool
}

type (
	PurchaseMade struct {
		OrderID string `json:"orderId"`
		Total   int    `json:"total"`
	}
	PurchasePaid struct {
		OrderID string `json:"orderId"`
	}
	ShipPurchase   struct{ OrderID string }
	CancelPurchase struct{ Reason string }
)

const unpaid = "unpaid"

func (o *Purchase) OnPlaced(e PurchaseMade, deadlines saga.Deadlines) {
	o.Total = e.Total
	deadlines.Schedule(unpaid, time.Hour)
}

func (o *Purchase) OnPaid(e PurchasePaid, commands saga.Commands, deadlines saga.Deadlines) error {
	if o.Paid {
		return errors.New("paid twice")
	}
	o.Paid = true
	commands.Send(ShipPurchase{e.OrderID})
	deadlines.Cancel(unpaid)
	return nil
}

func (o *Purchase) OnPaymentMissing(commands saga.Commands) {
	commands.Send(CancelPurchase{"not paid within an hour"})
}

var purchases = saga.MustDefine[Purchase]("order",
	saga.Start((*Purchase).OnPlaced, saga.By("orderId")),
	saga.On((*Purchase).OnPaid, saga.By("orderId")),
	saga.OnDeadline(unpaid, (*Purchase).OnPaymentMissing, saga.Ends()),
)

// run calls body with an engine on a new SQLite file.
func run(def *saga.Definition, body func(ctx context.Context, db *schema.DB, e *saga.Engine)) {
	dir := must(os.MkdirTemp("", "norn-example"))
	defer func() { check(os.RemoveAll(dir)) }()
	ctx := context.Background()
	db := must(schema.Open(ctx, "sqlite://"+filepath.Join(dir, "norn.db")))
	defer func() { check(db.Close()) }()
	check(schema.Migrate(ctx, db))
	engine := must(saga.New(db, saga.Config{}, def))
	defer engine.Close()
	body(ctx, db, engine)
}

// fire dispatches what is due, as a poller does.
func fire(ctx context.Context, db *schema.DB, e *saga.Engine) {
	for _, d := range must(deadline.NewStore(db).Find(ctx, deadline.Sweep{Kinds: e.Kinds(), Cutoff: e.Now(), Limit: 100})) {
		check(e.Dispatch(ctx, d))
	}
}

func show(ctx context.Context, e *saga.Engine, id string) {
	got := must(e.Instance(ctx, saga.Key{Type: "order", ID: id}))
	fmt.Printf("%s ended=%v %s\n", got.Key, got.Ended, got.State)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
