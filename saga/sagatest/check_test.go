package sagatest_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
	"github.com/norn-go/norn/schema"
)

// Ledger is a service that norn's own parts make.
type Ledger struct {
	db     *schema.DB
	engine *saga.Engine
}

func newLedger(db *schema.DB, e *saga.Engine) *Ledger { return &Ledger{db, e} }

func sweeping(_ *poller.Poller, _ *outbox.Relay) *Sweeper { return &Sweeper{} }

// Sweeper is a service that sweeps by hand.
type Sweeper struct{}

func post(context.Context, Note, *saga.Engine, *schema.DB) error { return nil }

// Limits are settings of the application.
type Limits struct{ Most time.Duration }

var clocked = fxmodule.Saga[Probe]("probe", saga.Start(func(*Probe, Begin, Clock) {}, saga.By("id")))

func TestCheckPassesWhatCouldStart(t *testing.T) {
	for name, opts := range map[string][]fx.Option{
		"a saga type":               {fxmodule.Saga[Probe]("probe", saga.Start((*Probe).OnBegin, saga.By("id")))},
		"with a service":            {clocked, fx.Provide(func() Clock { return london{} })},
		"with the module":           {clocked, fx.Supply(fx.Annotate(london{}, fx.As(new(Clock)))), fxmodule.Module},
		"with a command handler":    {clocked, fx.Provide(func() Clock { return london{} }), fxmodule.CommandHandler(post)},
		"with a database":           {fx.Provide(func() *sql.DB { panic("opened") }), fxmodule.CommandHandler(post)},
		"with a database's address": {fxmodule.Override("database.url", "postgres://nobody@127.0.0.1:1/nothing"), fxmodule.CommandHandler(post)},
		"in a module":               {fx.Module("shop", fx.Provide(fx.Private, func() Clock { return london{} }), clocked)},
	} {
		t.Run(name, func(t *testing.T) {
			sagatest.Check(t, append(opts, fxmodule.ConfigFile(""))...)
		})
	}
}

func TestCheckStartsNothing(t *testing.T) {
	never := func(what string) func() { return func() { t.Errorf("%s ran", what) } }
	sagatest.Check(t, fxmodule.ConfigFile(""),
		fx.Invoke(never("an invocation")),
		fx.Module("other", fx.Invoke(never("a module's invocation"))),
		fx.Provide(func(l fx.Lifecycle) Clock {
			l.Append(fx.StartStopHook(never("a start hook"), never("a stop hook")))
			return london{}
		}),
		clocked, fxmodule.Module)
}

func TestCheckNamesWhatWouldKeepTheApplicationFromStartingGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte("saga:\n  deadline:\n    lease-ttl: 30s\nlimits:\n  most: 30\n"), 0o600))
	limited := fxmodule.Saga[Probe]("probe", saga.Start(func(*Probe, Begin, *Limits) {}, saga.By("id")))
	for name, opts := range map[string][]fx.Option{
		"definitions": {fxmodule.ConfigFile(file),
			fxmodule.Saga[Probe]("probe", saga.Start((*Probe).OnBegin)), fxmodule.Saga[Mirror]("", saga.Start((*Mirror).OnBegin, saga.By("id"))),
			fxmodule.CommandHandler(func(Note) error { return nil })},
		"services":    {fxmodule.ConfigFile(""), clocked, fxmodule.CommandHandler(func(context.Context, Note, *Ledger) error { return nil })},
		"constructor": {fxmodule.ConfigFile(""), clocked, fx.Provide(func() (Clock, error) { return nil, errors.New("no clock in this house") })},
		"settings": {fxmodule.ConfigFile(file), limited, fx.Provide(config.Section[Limits]("limits")),
			fxmodule.Override("saga.deadline.lease-ttl", "2m")},
		"connection": {fxmodule.ConfigFile(""), clocked, fx.Provide(func(db *schema.DB) (Clock, error) { return london{}, db.Ping() })},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			sagatest.Check(r, opts...)
			golden(t, "check-"+name, strings.ReplaceAll(r.text(), file, "shop.yaml"))
		})
	}
}

func TestCheckFindsWhatAnInvocationMissesAndWhatPanics(t *testing.T) {
	for part, opts := range map[string]fx.Option{
		"missing type: *sagatest_test.Ledger": fx.Invoke(func(*Ledger) {}),
		`panic: "no clock"`:                   fx.Options(clocked, fx.Provide(func() Clock { panic("no clock") })),
	} {
		t.Run(part, func(t *testing.T) {
			r := &recorder{TB: t}
			sagatest.Check(r, fxmodule.ConfigFile(""), opts)
			require.Contains(t, r.text(), part)
		})
	}
}

func TestCheckGivesConstructorsPartsOfNornThatAreNotConnected(t *testing.T) {
	var ping error
	sagatest.Check(t, fxmodule.ConfigFile(""),
		fx.Provide(newLedger),
		fxmodule.CommandHandler(func(context.Context, Note, *Ledger) error { return nil }),
		fx.Decorate(func(l *Ledger) *Ledger {
			require.NotNil(t, l.engine)
			ping = l.db.Ping()
			return l
		}),
		fx.Provide(sweeping), fx.Invoke(func(*Sweeper) {}))
	require.EqualError(t, ping, "fxmodule: Check opens no database")
}
