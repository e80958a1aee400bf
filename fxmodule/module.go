package fxmodule

import (
	"log/slog"
	"sync/atomic"

	"go.uber.org/fx"
)

// Module is norn in an fx application: settings, database, tables, engine, relay and poller. It belongs into an
// application once. No service is made before settings and saga types are right, and what is wrong with them comes out of
// fx as norn said it; so does what is wrong with services if Module stands before the application's own fx.Invoke.
//
// With database.url set norn opens that database; else the application provides a *sql.DB or a *sqlx.DB, which stays
// its own. A *slog.Logger is used if the application provides one, else slog.Default.
var Module = fx.Options(
	fx.Provide(newNode, load, check, provideChecked, openDatabase, newCore, newRunners, fx.Private),
	fx.Provide(provideSource, provideConfig, provideDB, provideEngine, provideRelay, providePoller),
	fx.Supply(included(true)),
	fx.Module("norn", fx.Invoke(func(v verdict) error { return v.err })), // what modules invoke comes first
	fx.Invoke(func(r *runners) error { return r.err }),
)

// included tells [Check] that an application has the Module.
type included bool

// order numbers what is registered: the values of an fx group come in no order.
var order atomic.Int64

// logging is the application's logger, if it has one.
type logging struct {
	fx.In
	Given *slog.Logger `optional:"true"`
}

func (l logging) logger() *slog.Logger {
	if l.Given != nil {
		return l.Given
	}
	return slog.Default()
}
