package bank

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Module is the bank with its tables, its command handlers and its confirmer.
var Module = fx.Options(
	fx.Provide(provide),
	fxmodule.CommandHandler(func(ctx context.Context, c transfer.DebitAccount, b *Bank) error { return b.Debit(ctx, c) }),
	fxmodule.CommandHandler(func(ctx context.Context, c transfer.CreditAccount, b *Bank) error { return b.Credit(ctx, c) }),
	fxmodule.CommandHandler(func(ctx context.Context, c transfer.ReverseDebit, b *Bank) error { return b.ReverseDebit(ctx, c) }),
	fxmodule.CommandHandler(func(ctx context.Context, c transfer.ReverseCredit, b *Bank) error { return b.ReverseCredit(ctx, c) }),
	fx.Invoke(confirm),
)

func provide(lifecycle fx.Lifecycle, db *schema.DB, log *slog.Logger) *Bank {
	lifecycle.Append(fx.StartHook(func(ctx context.Context) error { return CreateTables(ctx, db) }))
	return New(db, log)
}

// confirm runs the confirmer from start to stop.
func confirm(lifecycle fx.Lifecycle, b *Bank, engine *saga.Engine) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1) // one: the result of Run
	lifecycle.Append(fx.StartStopHook(
		func() {
			go func() { done <- NewConfirmer(b, engine).Run(ctx) }()
		},
		func(stop context.Context) error {
			cancel()
			select {
			case err := <-done:
				return err
			case <-stop.Done():
				return context.Cause(stop)
			}
		},
	))
}
