package fxmodule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// The Go blocks of docs/wiring.md stand in this file, word for word.

type SeatHeld struct {
	Seat  string `json:"seat"`
	Until time.Time
}

type SeatPaid struct {
	Seat string `json:"seat"`
}

type ReleaseSeat struct{ Seat string }

type Reservation struct{ Seat string }

const expiry = "expiry"

func (r *Reservation) OnHeld(e SeatHeld, deadlines saga.Deadlines) {
	r.Seat = e.Seat
	deadlines.ScheduleAt(expiry, e.Until)
}

func (r *Reservation) OnExpiry(commands saga.Commands) {
	commands.Send(ReleaseSeat{r.Seat})
}

func (r *Reservation) OnPaid(SeatPaid) {}

var reservation = []saga.Option{
	saga.Start((*Reservation).OnHeld, saga.By("seat")),
	saga.On((*Reservation).OnPaid, saga.By("seat"), saga.Ends()),
	saga.OnDeadline(expiry, (*Reservation).OnExpiry, saga.Ends()),
}

// Seats is the application's own service.
type Seats struct{ Released chan string }

func (s *Seats) Release(_ context.Context, c ReleaseSeat) error {
	s.Released <- c.Seat
	return nil
}

func application(address string, seats *Seats, opts ...fx.Option) *fx.App {
	return fx.New(
		fx.Supply(seats),
		fxmodule.Saga[Reservation]("reservation", reservation...),
		fxmodule.CommandHandler(func(ctx context.Context, c ReleaseSeat, s *Seats) error {
			return s.Release(ctx, c)
		}),
		fxmodule.Override("database.url", address),
		fx.Options(opts...),
		fxmodule.Module,
	)
}

// serve runs norn until ctx ends. It calls ready with the engine once everything runs.
func serve(ctx context.Context, address string, seats *Seats, ready func(*saga.Engine)) (err error) {
	db, err := schema.Open(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := schema.Migrate(ctx, db); err != nil {
		return err
	}
	clock := schema.NewClock(db)
	if _, err := clock.Measure(ctx); err != nil {
		return err
	}

	definition, err := saga.Define[Reservation]("reservation", reservation...)
	if err != nil {
		return err
	}
	due, sent := deadline.NewSignal(), outbox.NewSignal()
	engine, err := saga.New(db, saga.Config{Clock: clock, Signal: due, Outbox: sent, Listen: true}, definition)
	if err != nil {
		return err
	}
	defer engine.Close()

	router, err := outbox.NewRouter(engine.Types(), seats.Release)
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(outbox.NewStore(db), lease.New(db, "seats/relay", lease.Config{}), outbox.Config{
		Router: router, SagaTypes: definition.Names(), Now: engine.Now, Signal: sent,
	})
	if err != nil {
		return err
	}
	poller, err := poller.New(deadline.NewStore(db), lease.New(db, "seats", lease.Config{}), engine, poller.Config{
		Now: engine.Now, Signal: due,
	})
	if err != nil {
		return err
	}

	// Deferred calls run in reverse: the poller stops first, then the relay, the engine and the database.
	defer background(engine.Run)()
	defer background(relay.Run)()
	defer background(poller.Run)()
	ready(engine)
	<-ctx.Done()
	return nil
}

// background runs a Run method on a goroutine of its own. The function it returns stops it and waits for it.
func background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			slog.Error("norn stopped", "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func Example() {
	address, remove := temporary()
	defer remove()
	seats := &Seats{Released: make(chan string)}
	var engine *saga.Engine
	app := application(address, seats, silent, fx.Populate(&engine))

	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		panic(err)
	}
	if err := engine.Handle(ctx, SeatHeld{Seat: "12A", Until: time.Now()}); err != nil {
		panic(err)
	}
	fmt.Println("released", <-seats.Released)
	fmt.Println(app.Stop(ctx))
	// Output:
	// released 12A
	// <nil>
}

func Example_withoutFx() {
	address, remove := temporary()
	defer remove()
	seats := &Seats{Released: make(chan string)}
	ctx, cancel := context.WithCancel(context.Background())
	err := serve(ctx, address, seats, func(engine *saga.Engine) {
		if err := engine.Handle(ctx, SeatHeld{Seat: "12A", Until: time.Now()}); err != nil {
			panic(err)
		}
		fmt.Println("released", <-seats.Released)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// released 12A
	// <nil>
}

// silent keeps logs out of an example's output.
var silent = fx.Options(
	fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
	fx.Supply(slog.New(slog.DiscardHandler)),
)

// temporary is the address of a database for an example.
func temporary() (address string, remove func()) {
	dir, err := os.MkdirTemp("", "norn")
	if err != nil {
		panic(err)
	}
	return "sqlite://" + filepath.Join(dir, "norn.db"), func() { _ = os.RemoveAll(dir) }
}

const page = "../docs/wiring.md"

func TestBlocksOfTheWiringPageAreTheExamples(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var source strings.Builder
	for _, file := range []string{"wiring_test.go", "example_test.go"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		source.WriteString(plain(string(content)))
	}
	blocks := strings.Split(string(text), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		code, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		require.Contains(t, source.String(), plain(code), "%s has a block that no example has", page)
	}
}

// plain is code without its indentation.
func plain(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}
