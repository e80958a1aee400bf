package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
)

// open opens a database with norn's tables for an example.
func open(ctx context.Context) (db *schema.DB, closeAll func()) {
	dir, err := os.MkdirTemp("", "norn")
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
	return db, func() { _ = db.Close(); _ = os.RemoveAll(dir) }
}

func ExampleLocker_Hold() {
	ctx := context.Background()
	db, closeAll := open(ctx)
	defer closeAll()

	one := lease.New(db, "nightly", lease.Config{TTL: time.Minute})
	other := lease.New(db, "nightly", lease.Config{TTL: time.Minute})

	err := one.Hold(ctx, func(ctx context.Context) error {
		fmt.Println("holding under term", one.Term())
		err := other.Hold(ctx, func(context.Context) error { return nil })
		fmt.Println("the other one is refused:", errors.Is(err, lease.ErrHeld))
		return nil
	})
	fmt.Println("given back:", err == nil, !one.Held())
	// Output:
	// holding under term 1
	// the other one is refused: true
	// given back: true true
}

func ExampleLocker_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	db, closeAll := open(ctx)
	defer closeAll()

	l := lease.New(db, "nightly", lease.Config{Logger: slog.New(slog.DiscardHandler)})
	err := l.Run(ctx, 10*time.Second, func(ctx context.Context) error {
		fmt.Println("leading")
		cancel()     // as a stop of the process would
		<-ctx.Done() // work goes on until the context ends
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// leading
	// stopped: <nil>
}
