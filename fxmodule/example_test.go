package fxmodule_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// demonstrate runs an application on a new database, starts a reservation that expires at once, and waits for done.
func demonstrate(done <-chan struct{}, opts ...fx.Option) {
	address, remove := temporary()
	defer remove()
	var engine *saga.Engine
	app := fx.New(silent, fxmodule.ConfigFile(""), fxmodule.Override("database.url", address),
		fx.Options(opts...), fxmodule.Module, fx.Populate(&engine))
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Handle(ctx, SeatHeld{Seat: "12A", Until: time.Now()}, saga.WithMetadata(saga.Metadata{"user": "ada"})); err != nil {
		fmt.Println(err)
	}
	<-done
	if err := app.Stop(ctx); err != nil {
		fmt.Println(err)
	}
}

func reservations() fx.Option { return fxmodule.Saga[Reservation]("reservation", reservation...) }

func ExampleSaga() {
	seats := &Seats{Released: make(chan string, 1)}
	module := fx.Module("seats",
		fx.Supply(seats),
		fxmodule.Saga[Reservation]("reservation",
			saga.Start(func(r *Reservation, e SeatHeld, s *Seats, commands saga.Commands) {
				commands.Send(ReleaseSeat{e.Seat})
			}, saga.By("seat")),
			saga.On((*Reservation).OnPaid, saga.By("seat"), saga.Ends()),
		),
		fxmodule.CommandHandler(func(ctx context.Context, c ReleaseSeat, s *Seats) error { return s.Release(ctx, c) }),
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		fmt.Println("released", <-seats.Released)
	}()
	demonstrate(done, module)
	// Output: released 12A
}

func ExampleSaga_mistakes() {
	app := fx.New(silent, fxmodule.Module, fxmodule.ConfigFile(""), fxmodule.Override("database.url", "sqlite://seats.db"),
		fxmodule.Override("saga.workers", "none"),
		fxmodule.Saga[Reservation]("reservation", saga.Start((*Reservation).OnHeld)),
		fxmodule.CommandHandler(func(ReleaseSeat) error { return nil }),
	)
	fmt.Println(app.Err())
	// Output:
	// config: saga.workers (given by the program): got "none", want whole number, from 1 to 65536
	// saga: reservation: start fxmodule_test.(*Reservation).OnHeld: no association: add saga.By(…)
	// outbox: command handler func(fxmodule_test.ReleaseSeat) error: want func(context.Context, C) error
}

func ExampleCommandHandler() {
	done := make(chan struct{})
	seats := &Seats{Released: make(chan string, 1)}
	demonstrate(done, reservations(), fx.Supply(seats),
		fxmodule.CommandHandler(func(ctx context.Context, c ReleaseSeat, s *Seats) error {
			defer close(done)
			fmt.Println("release", c.Seat, "attempt", outbox.DeliveryFrom(ctx).Attempt)
			return s.Release(ctx, c)
		}),
	)
	// Output: release 12A attempt 1
}

func ExampleInterceptor() {
	done := make(chan struct{})
	demonstrate(done, reservations(),
		fxmodule.Interceptor(func(ctx context.Context, m saga.Message, next func(context.Context, saga.Message) error) error {
			defer close(done)
			fmt.Printf("%T by %s\n", m.Payload, m.Metadata["user"])
			return next(ctx, m)
		}),
	)
	// Output: fxmodule_test.SeatHeld by ada
}

func ExampleCommandInterceptor() {
	done := make(chan struct{})
	demonstrate(done, reservations(),
		fxmodule.CommandHandler(func(context.Context, ReleaseSeat) error { return nil }),
		fxmodule.CommandInterceptor(func(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
			defer close(done)
			err := next(ctx, c)
			fmt.Println(c.Type, c.SagaID, err)
			return err
		}),
	)
	// Output: fxmodule_test.ReleaseSeat 12A <nil>
}

func ExampleSink() {
	done := make(chan struct{})
	demonstrate(done, reservations(),
		fxmodule.Sink(outbox.SinkFunc(func(_ context.Context, c outbox.Command) error {
			defer close(done)
			fmt.Println("to the broker:", c.Type, string(c.Payload))
			return nil
		})),
	)
	// Output: to the broker: fxmodule_test.ReleaseSeat {"Seat":"12A"}
}

func ExampleNames() {
	done := make(chan struct{})
	demonstrate(done, reservations(),
		fxmodule.Names(saga.Named[ReleaseSeat]("seats.release", "booking.ReleaseSeat")),
		fxmodule.Sink(outbox.SinkFunc(func(_ context.Context, c outbox.Command) error {
			defer close(done)
			fmt.Println(c.Type)
			return nil
		})),
	)
	// Output: seats.release
}

func ExampleConfigFile() {
	dir, err := os.MkdirTemp("", "norn")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "seats.yaml")
	if err := os.WriteFile(file, []byte("saga:\n  workers: 3\n"), 0o600); err != nil {
		panic(err)
	}
	var settings config.Config
	address, remove := temporary()
	defer remove()
	app := fx.New(silent, fxmodule.Module, fxmodule.ConfigFile(file), fxmodule.Override("database.url", address), fx.Populate(&settings))
	fmt.Println(settings.Workers, app.Start(context.Background()), app.Stop(context.Background()))
	// Output: 3 <nil> <nil>
}

func ExampleOverride() {
	done := make(chan struct{})
	close(done)
	demonstrate(done, reservations(),
		fxmodule.Override("saga.deadline.polling.interval", "10s"),
		fx.Invoke(func(c config.Config) { fmt.Println(c.Deadline.Polling.Interval) }),
	)
	// Output: 10s
}

func ExampleModule_ownDatabase() {
	address, remove := temporary()
	defer remove()
	pool, err := sql.Open("sqlite3", "file:"+address[len("sqlite://"):]+"?_txlock=immediate&_journal_mode=WAL")
	if err != nil {
		panic(err)
	}
	defer func() { _ = pool.Close() }()

	app := fx.New(silent, fxmodule.ConfigFile(""),
		fx.Supply(pool),
		reservations(),
		fxmodule.Module,
	)
	fmt.Println(app.Start(context.Background()), app.Stop(context.Background()), pool.Ping())
	// Output: <nil> <nil> <nil>
}
