package outbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/schema"
)

// open makes an outbox on a SQLite file of its own.
func open(ctx context.Context) (db *schema.DB, remove func()) {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		panic(err)
	}
	db, err = schema.Open(ctx, "sqlite://"+filepath.Join(dir, "norn.db"))
	if err != nil {
		panic(err)
	}
	if err := schema.Migrate(ctx, db); err != nil {
		panic(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

// send stores commands as an engine does: in the transaction that saves the saga.
func send(ctx context.Context, db *schema.DB, store *outbox.Store, commands ...outbox.New) error {
	return db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		var batch schema.Batch
		store.Put(&batch, commands)
		_, err := tx.Run(ctx, &batch)
		return err
	})
}

func ExampleStore_Put() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()
	store := outbox.NewStore(db)
	err := send(ctx, db, store,
		outbox.New{ID: "t1-1", SagaType: "transfer", SagaID: "t1", Type: "debit", Payload: `{"Amount":12}`, Created: time.Now()},
		outbox.New{ID: "t1-2", SagaType: "transfer", SagaID: "t1", Type: "credit", Payload: `{"Amount":12}`, Created: time.Now()},
	)
	if err != nil {
		panic(err)
	}
	backlog, err := store.Backlog(ctx)
	fmt.Println(backlog.Pending, "pending,", backlog.Parked, "parked", err)
	// Output: 2 pending, 0 parked <nil>
}

func ExampleRelay_Flush() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()
	store := outbox.NewStore(db)
	router, err := outbox.NewRouter(stored,
		func(ctx context.Context, c debit) error {
			fmt.Println("debit", c.Amount, "as", outbox.DeliveryFrom(ctx).ID)
			return nil
		},
		func(_ context.Context, c credit) error {
			fmt.Println("credit", c.Amount)
			return nil
		})
	if err != nil {
		panic(err)
	}
	relay, err := outbox.NewRelay(store, lease.New(db, "relay", lease.Config{Logger: quiet}), outbox.Config{Router: router})
	if err != nil {
		panic(err)
	}
	err = send(ctx, db, store,
		outbox.New{ID: "t1-1", SagaType: "transfer", SagaID: "t1", Type: "debit", Payload: `{"Amount":12}`, Created: time.Now()},
		outbox.New{ID: "t1-2", SagaType: "transfer", SagaID: "t1", Type: "credit", Payload: `{"Amount":12}`, Created: time.Now()},
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(relay.Flush(ctx))
	// Output:
	// debit 12 as t1-1
	// credit 12
	// <nil>
}

func ExampleRelay_Run() {
	ctx, stop := context.WithCancel(context.Background())
	db, remove := open(ctx)
	defer remove()
	store, signal := outbox.NewStore(db), outbox.NewSignal()
	broker := outbox.SinkFunc(func(_ context.Context, c outbox.Command) error {
		fmt.Println(c.SagaID, "sends", c.Type, string(c.Payload))
		stop()
		return nil
	})
	relay, err := outbox.NewRelay(store, lease.New(db, "relay", lease.Config{Logger: quiet}), outbox.Config{Sink: broker, Signal: signal})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- relay.Run(ctx) }()
	if err := send(ctx, db, store, outbox.New{ID: "t1-1", SagaType: "transfer", SagaID: "t1", Type: "mail", Payload: `"hello"`, Created: time.Now()}); err != nil {
		panic(err)
	}
	signal.Notify()
	fmt.Println(<-done, relay.Stats().Delivered)
	// Output:
	// t1 sends mail "hello"
	// <nil> 1
}

func ExampleStore_Parked() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()
	store := outbox.NewStore(db)
	router, err := outbox.NewRouter(stored, func(_ context.Context, c debit) error {
		fmt.Println("debit", c.Amount)
		return nil
	})
	if err != nil {
		panic(err)
	}
	relay, err := outbox.NewRelay(store, lease.New(db, "relay", lease.Config{Logger: quiet}), outbox.Config{Router: router, Logger: quiet})
	if err != nil {
		panic(err)
	}
	if err := send(ctx, db, store, outbox.New{ID: "t1-1", SagaType: "transfer", SagaID: "t1", Type: "debit", Payload: `{"Amount":"?"}`, Created: time.Now()}); err != nil {
		panic(err)
	}
	if err := relay.Flush(ctx); err != nil {
		panic(err)
	}
	parked, err := store.Parked(ctx, "transfer", "t1", 0, 10)
	if err != nil {
		panic(err)
	}
	for _, p := range parked {
		fmt.Println(p.ID, string(p.Payload))
		fmt.Println(store.Discard(ctx, p.Seq))
	}
	// Output:
	// t1-1 {"Amount":"?"}
	// true <nil>
}

func ExampleSignal() {
	signal := outbox.NewSignal()
	signal.Notify()
	signal.Notify()
	<-signal.C()
	fmt.Println(len(signal.C()))
	// Output: 0
}

func ExampleInterceptor() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()
	store := outbox.NewStore(db)
	log := func(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
		err := next(ctx, c)
		fmt.Println(c.Type, c.Metadata["tenant"], err)
		return err
	}
	broker := outbox.SinkFunc(func(context.Context, outbox.Command) error { return nil })
	relay, err := outbox.NewRelay(store, lease.New(db, "relay", lease.Config{Logger: quiet}),
		outbox.Config{Sink: broker, Interceptors: []outbox.Interceptor{log}})
	if err != nil {
		panic(err)
	}
	if err := send(ctx, db, store, outbox.New{ID: "t1-1", SagaType: "transfer", SagaID: "t1", Type: "mail", Payload: `""`,
		Metadata: map[string]string{"tenant": "north"}, Created: time.Now()}); err != nil {
		panic(err)
	}
	if err := relay.Flush(ctx); err != nil {
		panic(err)
	}
	// Output: mail north <nil>
}
