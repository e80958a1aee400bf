package transfer_test

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga/sagatest"
)

// ledger is a bank that books each command once, by its id.
type ledger struct {
	booked   map[string]bool
	balances map[string]decimal.Decimal
}

func (l *ledger) open() { l.booked, l.balances = map[string]bool{}, map[string]decimal.Decimal{} }

func (l *ledger) book(ctx context.Context, account string, amount decimal.Decimal) error {
	if id := outbox.DeliveryFrom(ctx).ID; !l.booked[id] {
		l.booked[id] = true
		l.balances[account] = l.balances[account].Add(amount)
	}
	return nil
}

func (l *ledger) handlers() sagatest.Option {
	return sagatest.CommandHandler(
		func(ctx context.Context, c transfer.DebitAccount) error {
			return l.book(ctx, c.AccountID, c.Amount.Neg())
		},
		func(ctx context.Context, c transfer.CreditAccount) error { return l.book(ctx, c.AccountID, c.Amount) },
		func(ctx context.Context, c transfer.ReverseDebit) error { return l.book(ctx, c.AccountID, c.Amount) },
		func(ctx context.Context, c transfer.ReverseCredit) error {
			return l.book(ctx, c.AccountID, c.Amount.Neg())
		},
	)
}

// crash lets a transfer meet events, with its commands delivered after each, and then time, wherever its process dies.
func crash(t *testing.T, events []any, opts ...any) {
	t.Helper()
	bank := &ledger{}
	sagatest.Crash(t, transfer.Type, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		bank.open()
		for _, event := range events {
			f.When(event)
			f.WhenCommandsDelivered()
		}
		f.WhenTimePasses(timeout)
		f.WhenCommandsDelivered()
		f.ExpectEnded()
		f.Observe("balances", bank.balances)
	}, append(opts, transfer.Module, sagatest.Provide(&transfer.Settings{Timeout: timeout}), bank.handlers())...)
}

func TestCompletedTransferIsTheSameWhereverItsProcessDies(t *testing.T) {
	crash(t, []any{requested, debitConfirmed, creditConfirmed})
}

func TestTransferWithoutDebitConfirmationIsTheSameWhereverItsProcessDies(t *testing.T) {
	crash(t, []any{requested})
}

func TestTransferWithoutCreditConfirmationIsTheSameWhereverItsProcessDies(t *testing.T) {
	crash(t, []any{requested, debitConfirmed}, sagatest.OnBoth())
}
