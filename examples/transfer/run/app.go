package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// app is the running application.
type app struct {
	engine *saga.Engine
	db     *schema.DB
	outbox *outbox.Store
	stop   func(context.Context) error
}

// quick are settings for transfers that take seconds, where the environment gives no others: norn's own defaults suit
// deadlines of minutes.
var quick = []struct{ key, env, value string }{
	{"saga.deadline.polling.interval", "SAGA_DEADLINE_POLLING_INTERVAL", "1s"},
	{"saga.deadline.lease-ttl", "SAGA_DEADLINE_LEASE_TTL", "3s"},
	{"saga.outbox.retry.initial-backoff", "SAGA_OUTBOX_RETRY_INITIAL_BACKOFF", "200ms"},
	{"saga.deadline.retry.initial-backoff", "SAGA_DEADLINE_RETRY_INITIAL_BACKOFF", "200ms"},
}

func start(ctx context.Context, o Options) (*app, error) {
	a := &app{}
	options := []fx.Option{
		fx.NopLogger,
		fx.Supply(logger(o)),
		fx.Populate(&a.engine, &a.db),
		transfer.Module,
		bank.Module,
		fxmodule.Override("database.url", o.Database),
		fxmodule.Module,
	}
	if o.Timeout > 0 {
		options = append(options, fxmodule.Override("transfer.timeout", o.Timeout.String()))
	}
	for _, setting := range quick {
		if os.Getenv(setting.env) == "" {
			options = append(options, fxmodule.Override(setting.key, setting.value))
		}
	}
	application := fx.New(options...)
	if err := application.Err(); err != nil {
		return nil, fmt.Errorf("start: %w", dig.RootCause(err)) // without the way there through the graph
	}
	if err := application.Start(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	a.outbox, a.stop = outbox.NewStore(a.db), application.Stop
	return a, nil
}

func logger(o Options) *slog.Logger {
	level := slog.LevelWarn
	if o.Verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(o.Err, &slog.HandlerOptions{Level: level}))
}
