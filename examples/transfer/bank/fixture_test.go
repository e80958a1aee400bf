package bank_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var amount = decimal.RequireFromString("12.34")

// The transfers that every test may use: their banks confirm after 50ms, and of "lost" never.
var orders = []input.Order{
	{TransferID: "t1", SourceAccountID: "a", TargetAccountID: "b", Amount: amount, Debit: after(50), Credit: after(50)},
	{TransferID: "t2", SourceAccountID: "b", TargetAccountID: "a", Amount: amount, Debit: after(50), Credit: after(50)},
	{TransferID: "lost", SourceAccountID: "a", TargetAccountID: "b", Amount: amount, Debit: input.Delay{Never: true}, Credit: input.Delay{Never: true}},
}

func after(ms int) input.Delay { return input.Delay{After: time.Duration(ms) * time.Millisecond} }

// branch is a bank with its tables and orders.
type branch struct {
	*bank.Bank
	t  *testing.T
	db *schema.DB
}

func open(t *testing.T, db *schema.DB) branch {
	t.Helper()
	require.NoError(t, bank.CreateTables(t.Context(), db))
	require.NoError(t, bank.Accept(t.Context(), db, orders))
	return branch{bank.New(db, slog.New(slog.DiscardHandler)), t, db}
}

// balance is an account's balance less what it opened with, in cents.
func (b branch) balance(account string) (cents int64) {
	b.t.Helper()
	require.NoError(b.t, b.db.Get(b.t.Context(), &cents, "SELECT balance - opened FROM bank_account WHERE account_id = ?", account))
	return cents
}

func (b branch) owed() (commands []string) {
	b.t.Helper()
	var rows []struct{ Owed string }
	require.NoError(b.t, b.db.Select(b.t.Context(), &rows, "SELECT transfer_id || ' ' || command AS owed FROM bank_confirmation ORDER BY owed"))
	for _, r := range rows {
		commands = append(commands, r.Owed)
	}
	return commands
}

func (b branch) bookings() []bank.Booking {
	b.t.Helper()
	all, err := bank.Bookings(b.t.Context(), b.db)
	require.NoError(b.t, err)
	return all
}

func debit(transferID string) transfer.DebitAccount {
	return transfer.DebitAccount{TransferID: transferID, AccountID: "a", Amount: amount}
}

func reverseDebit(transferID string) transfer.ReverseDebit {
	return transfer.ReverseDebit{TransferID: transferID, AccountID: "a", Amount: amount}
}

func credit(transferID string) transfer.CreditAccount {
	return transfer.CreditAccount{TransferID: transferID, AccountID: "b", Amount: amount}
}

func reverseCredit(transferID string) transfer.ReverseCredit {
	return transfer.ReverseCredit{TransferID: transferID, AccountID: "b", Amount: amount}
}

// recorder takes events and writes down those it does not fail.
type recorder struct {
	mu     sync.Mutex
	events []any
	fail   func(event any) error // nil: all succeed
}

func (r *recorder) Handle(_ context.Context, event any, _ ...saga.MessageOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(event); err != nil {
			return err
		}
	}
	r.events = append(r.events, event)
	return nil
}

func (r *recorder) taken() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]any{}, r.events...)
}
