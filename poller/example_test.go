package poller_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/schema"
)

// reminders fires deadlines by printing them.
type reminders struct {
	db    *schema.DB
	store *deadline.Store
	fired chan struct{}
}

func (r *reminders) Kinds() []deadline.Kind {
	return []deadline.Kind{{Type: "invoice", Name: "remind"}}
}

func (r *reminders) Dispatch(ctx context.Context, d deadline.Due) error {
	err := r.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		_, there, err := r.store.Claim(ctx, tx, d)
		if err == nil && there {
			fmt.Println("remind of", d.ID)
		}
		return err
	})
	if err == nil && r.fired != nil {
		close(r.fired)
	}
	return err
}

// example stores one due deadline and makes a poller for it.
func example(ctx context.Context) (p *poller.Poller, r *reminders, closeAll func()) {
	dir, err := os.MkdirTemp("", "norn")
	check(err)
	db, err := schema.Open(ctx, "sqlite://"+filepath.Join(dir, "norn.db"))
	check(err)
	check(schema.Migrate(ctx, db))
	store := deadline.NewStore(db)
	check(db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		var b schema.Batch
		store.Put(&b, []deadline.New{{
			Key: deadline.Key{Type: "invoice", ID: "2024-17", Name: "remind"}, Token: "t1", PublicID: "p1", Due: time.Now().Add(-time.Hour),
		}})
		_, err := tx.Run(ctx, &b)
		return err
	}))
	r = &reminders{db: db, store: store}
	p, err = poller.New(store, lease.New(db, "invoices", lease.Config{Logger: quiet}), r, poller.Config{Logger: quiet})
	check(err)
	return p, r, func() { check(db.Close()); check(os.RemoveAll(dir)) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExamplePoller_Sweep() {
	ctx := context.Background()
	p, _, closeAll := example(ctx)
	defer closeAll()

	fmt.Println(p.Sweep(ctx))
	fmt.Println("fired:", p.Stats().Fired)
	// Output:
	// remind of 2024-17
	// <nil>
	// fired: 1
}

func ExamplePoller_Run() {
	ctx, stop := context.WithCancel(context.Background())
	p, r, closeAll := example(ctx)
	defer closeAll()

	r.fired = make(chan struct{})
	go func() { <-r.fired; stop() }() // as a signal to the process would
	fmt.Println(p.Run(ctx))
	// Output:
	// remind of 2024-17
	// <nil>
}
