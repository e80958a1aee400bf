package fxmodule_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

type Settings struct {
	Timeout time.Duration `default:"30m"`
}

type Note struct{ Text string }

type Opened struct {
	ID string `json:"id"`
}

type Case struct{}

type branch struct{ journal *journal }

func (b *branch) Transfer(from, to string) { b.journal.add(from + " to " + to) }

// permutations are all orders of the numbers below n.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			p := append(append(append([]int{}, shorter[:at]...), n-1), shorter[at:]...)
			all = append(all, p)
		}
	}
	return all
}

// anyOrder makes a deadline handler with its parameters behind the state in the given order.
func anyOrder(t *testing.T, order []int, j *journal) any {
	checks := []func(reflect.Value){
		func(v reflect.Value) { require.Equal(t, Note{"due"}, v.Interface()) },
		func(v reflect.Value) { v.Interface().(saga.Commands).Send(Remind{"o"}) },
		func(v reflect.Value) { require.Equal(t, "t", v.Interface().(saga.Firing).Name) },
		func(v reflect.Value) { require.Equal(t, 45*time.Minute, v.Interface().(*Settings).Timeout) },
		func(v reflect.Value) { v.Interface().(Bank).Transfer("a", "b") },
	}
	types := []reflect.Type{
		reflect.TypeFor[Note](), reflect.TypeFor[saga.Commands](), reflect.TypeFor[saga.Firing](),
		reflect.TypeFor[*Settings](), reflect.TypeFor[Bank](),
	}
	in := []reflect.Type{reflect.TypeFor[*Case]()}
	for _, i := range order {
		in = append(in, types[i])
	}
	return reflect.MakeFunc(reflect.FuncOf(in, nil, false), func(args []reflect.Value) []reflect.Value {
		for at, i := range order {
			checks[i](args[at+1])
		}
		return nil
	}).Interface()
}

func TestCase0123ParametersInEveryOrderWithSettingsAndAService(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		orders := permutations(5)
		t.Setenv("PAYMENT_TIMEOUT", "45m")
		var j journal
		intercepted := 0
		opts := []fx.Option{
			fx.Supply(fx.Annotate(&branch{&j}, fx.As(new(Bank)))),
			fx.Provide(config.Section[Settings]("payment")),
			fxmodule.Interceptor(func(ctx context.Context, m saga.Message, next func(context.Context, saga.Message) error) error {
				intercepted++
				return next(ctx, m)
			}),
		}
		for i, order := range orders {
			name := "case-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			opts = append(opts, fxmodule.Saga[Case](name, inOrder(t, order, &j)...))
		}
		engine := run(t, address, opts...)
		require.NoError(t, engine.Handle(t.Context(), Opened{"1"}))
		require.Equal(t, 1, intercepted)
		time.Sleep(46 * time.Minute)
		synctest.Wait()
		require.Len(t, j.list(), len(orders))
		require.EqualValues(t, 2*len(orders), engine.Stats().Handled)
		require.Equal(t, 1, intercepted)
	})
}

func inOrder(t *testing.T, order []int, j *journal) []saga.Option {
	return []saga.Option{
		saga.Start(func(_ *Case, _ Opened, s *Settings, d saga.Deadlines) {
			d.Schedule("t", s.Timeout, deadline.WithPayload(Note{"due"}))
		}, saga.By("id")),
		saga.OnDeadline("t", anyOrder(t, order, j), saga.Ends()),
	}
}

func TestInterceptorsStandInTheOrderTheyWereMade(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		events := func(name string) saga.Interceptor {
			return func(ctx context.Context, m saga.Message, next func(context.Context, saga.Message) error) error {
				j.add("event " + name)
				return next(ctx, m)
			}
		}
		commands := func(name string) outbox.Interceptor {
			return func(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
				j.add("command " + name)
				return next(ctx, c)
			}
		}
		engine := run(t, address, orders(), shop(&j),
			fxmodule.Interceptor(events("1")),
			fxmodule.CommandInterceptor(commands("1")),
			fxmodule.Interceptor(func(*journal) (saga.Interceptor, error) { return events("2"), nil }),
			fxmodule.CommandInterceptor(func(*journal) outbox.Interceptor { return commands("2") }),
			fxmodule.Interceptor(events("3")),
			fxmodule.CommandInterceptor(commands("3")),
		)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
		synctest.Wait()
		require.Equal(t, []string{
			"event 1", "event 2", "event 3", "event 1", "event 2", "event 3",
			"command 1", "command 2", "command 3", "ship o1",
		}, j.list())
	})
}

type broker struct{ journal *journal }

func (b *broker) Deliver(_ context.Context, c outbox.Command) error {
	b.journal.add("broker " + c.Type + " " + string(c.Payload))
	return nil
}

func TestASinkGetsWhatNoHandlerTakesUnderStableNames(t *testing.T) {
	var j journal
	for name, sink := range map[string]fx.Option{
		"a value":                        fxmodule.Sink(&broker{&j}),
		"a constructor of the interface": fxmodule.Sink(func() outbox.Sink { return &broker{&j} }),
		"a constructor of an implementation": fx.Options(fx.Supply(&j),
			fxmodule.Sink(func(j *journal) (*broker, error) { return &broker{j}, nil })),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, address string) {
				j = journal{}
				engine := run(t, address, orders(), sink,
					fxmodule.Names(saga.Named[Ship]("shop.ship")),
					fxmodule.CommandHandler(func(context.Context, Remind) error { j.add("remind"); return nil }))
				require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
				require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
				require.NoError(t, engine.Handle(t.Context(), Ordered{"o2"}))
				time.Sleep(31 * time.Minute)
				require.Equal(t, []string{`broker shop.ship {"Order":"o1"}`, "remind"}, j.list())
			})
		})
	}
}

func TestPrivateServicesOfAModuleReachItsHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		engine := run(t, address, fx.Module("orders",
			fx.Provide(func() *Ledger { return &Ledger{"north"} }, fx.Private),
			fxmodule.Saga[Order]("order-saga", saga.Start(func(_ *Order, e Ordered, l *Ledger, c saga.Commands) { c.Send(Ship{l.Bank}) }, saga.By("order"))),
			fxmodule.CommandHandler(func(_ context.Context, s Ship, l *Ledger) error { j.add(s.Order + " " + l.Bank); return nil }),
		))
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		synctest.Wait()
		require.Equal(t, []string{"north north"}, j.list())
	})
}

func TestFlagsBeatTheEnvironmentWhichBeatsTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	content := "saga:\n  workers: 3\n  deadline:\n    polling:\n      interval: 3s\n      batch-size: 3\n"
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	read := func(t *testing.T, opts ...fx.Option) (c config.Config) {
		app := fx.New(quiet, fx.Options(opts...), anyDatabase(t), fxmodule.Module, fx.Populate(&c))
		require.NoError(t, app.Err())
		start(t, app)
		stop(t, app)
		return c
	}
	t.Setenv("SAGA_DEADLINE_POLLING_INTERVAL", "4s")
	t.Setenv("SAGA_DEADLINE_POLLING_BATCH_SIZE", "4")

	c := read(t, fxmodule.ConfigFile(file),
		fxmodule.Override("saga.deadline.polling.batch-size", "4"), fxmodule.Override("saga.deadline.polling.batch-size", "5"),
		fxmodule.Override("saga.deadline.polling.batch-size", ""))
	require.Equal(t, 3, c.Workers)
	require.Equal(t, 4*time.Second, c.Deadline.Polling.Interval)
	require.Equal(t, 5, c.Deadline.Polling.BatchSize)

	t.Run("NORN_CONFIG names the file", func(t *testing.T) {
		t.Setenv("NORN_CONFIG", file)
		require.Equal(t, 3, read(t).Workers)
		require.NotEqual(t, 3, read(t, fxmodule.ConfigFile("")).Workers)
	})
	t.Run("norn.yaml is the file if it exists", func(t *testing.T) {
		t.Chdir(t.TempDir())
		require.NotEqual(t, 3, read(t).Workers)
		require.NoError(t, os.WriteFile("norn.yaml", []byte(content), 0o600))
		require.Equal(t, 3, read(t).Workers)
	})
}

func TestCase0101WithoutSettingsTheDefaultsHold(t *testing.T) {
	var c config.Config
	app := fx.New(quiet, fxmodule.ConfigFile(""), anyDatabase(t), fxmodule.Module, fx.Populate(&c))
	start(t, app)
	stop(t, app)
	require.True(t, c.Deadline.Enabled)
	require.Equal(t, 30*time.Second, c.Deadline.Polling.Interval)
	require.Equal(t, 2*time.Minute, c.Deadline.LeaseTTL)
	require.Equal(t, 100, c.Deadline.Polling.BatchSize)
	require.True(t, c.Schema.Auto)
	require.Equal(t, "SAGA_DEADLINE", c.Schema.Names().Deadline)
	require.Equal(t, "SAGA_DEADLINE_LOCK", c.Schema.Names().DeadlineLock)
}

func TestModuleMayStandInAModuleOfTheApplication(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		var engine *saga.Engine
		app := fx.New(quiet, fx.Populate(&engine), orders(),
			fxmodule.Override("database.url", address), fxmodule.Override("saga.clock", "process"), fxmodule.Override("saga.wake.listen", "false"),
			fx.Module("infrastructure", fxmodule.Module, fxmodule.ConfigFile(""), fx.Module("commands", shop(&j))))
		start(t, app)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
		synctest.Wait()
		stop(t, app)
		require.Equal(t, []string{"ship o1"}, j.list())
	})
}

func TestAnApplicationCanBeValidatedWithoutADatabase(t *testing.T) {
	var j journal
	require.NoError(t, fx.ValidateApp(quiet, fxmodule.Module, orders(), shop(&j)))
}

func TestP05ADeadlineWithoutAHandlerFailsTheEventThatSchedulesIt(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		engine := run(t, address, fxmodule.Saga[Order]("order-saga", saga.Start((*Order).OnOrdered, saga.By("order"))))
		require.ErrorContains(t, engine.Handle(t.Context(), Ordered{"o1"}), unpaid)
		_, err := engine.Instance(t.Context(), saga.Key{Type: "order-saga", ID: "o1"})
		require.ErrorIs(t, err, saga.ErrNotFound)
	})
}
