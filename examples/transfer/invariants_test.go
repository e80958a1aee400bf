package main_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/examples/transfer/run"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// verify looks at the tables for everything that must hold when all transfers of the orders have ended.
func verify(t *testing.T, address string, orders []input.Order, s run.Summary) {
	t.Helper()
	db := schematest.Open(t, address)
	bookings, err := bank.Bookings(t.Context(), db)
	require.NoError(t, err)
	states := endedTransfers(t, db)
	require.Len(t, states, len(orders), "every transfer has ended, and no other was begun")

	completed := verifyTransfers(t, orders, states, bookings)
	verifyAccounts(t, db, bookings)
	verifyNothingIsLeft(t, db)

	fired, commands := 0, map[string]int{"DebitAccount": 0, "CreditAccount": 0, "ReverseDebit": 0, "ReverseCredit": 0}
	for _, state := range states {
		if state.TimedOut != "" {
			fired++
		}
	}
	for _, b := range bookings {
		commands[b.Command]++
	}
	s.DurationMs = 0
	require.Equal(t, run.Summary{Transfers: len(orders), Completed: completed, Compensated: len(orders) - completed,
		Commands: commands, DeadlinesFired: fired, Conserved: true}, s)
}

func endedTransfers(t *testing.T, db *schema.DB) map[string]transfer.TransferSaga {
	t.Helper()
	e, err := saga.New(db, saga.Config{Service: saga.Services(&transfer.Settings{})},
		saga.MustDefine[transfer.TransferSaga](transfer.Type, transfer.Options()...))
	require.NoError(t, err)
	defer e.Close()
	states := map[string]transfer.TransferSaga{}
	for i, err := range e.Instances(t.Context(), saga.Query{Type: transfer.Type}) {
		require.NoError(t, err)
		require.True(t, i.Ended, i.ID)
		states[i.ID], err = transfer.Of(i)
		require.NoError(t, err)
	}
	return states
}

// verifyTransfers holds each transfer's bookings against how it ended, and counts the completed ones.
func verifyTransfers(t *testing.T, orders []input.Order, states map[string]transfer.TransferSaga, bookings []bank.Booking) (completed int) {
	t.Helper()
	booked := map[string]map[string]int64{}
	for _, b := range bookings {
		if booked[b.TransferID] == nil {
			booked[b.TransferID] = map[string]int64{}
		}
		booked[b.TransferID][b.Command] = b.Cents
	}
	for _, o := range orders {
		cents := o.Amount.Mul(decimal.NewFromInt(100)).IntPart()
		state := states[o.TransferID]
		var want map[string]int64
		switch {
		case state.Completed():
			completed++
			require.Empty(t, state.TimedOut, o.TransferID)
			require.False(t, o.Debit.Never || o.Credit.Never, "%s was confirmed though its bank never did", o.TransferID)
			want = map[string]int64{"DebitAccount": -cents, "CreditAccount": cents}
		case state.TimedOut == transfer.PaymentTimeout:
			want = map[string]int64{"DebitAccount": -cents, "ReverseDebit": cents}
		case state.TimedOut == transfer.CreditTimeout:
			want = map[string]int64{"DebitAccount": -cents, "CreditAccount": cents, "ReverseCredit": -cents, "ReverseDebit": cents}
		default:
			t.Errorf("%s ended neither completed nor by a timeout", o.TransferID)
		}
		require.Equal(t, want, booked[o.TransferID], o.TransferID)
	}
	return completed
}

// verifyAccounts finds an effect that was doubled or lost between a booking and its account.
func verifyAccounts(t *testing.T, db *schema.DB, bookings []bank.Booking) {
	t.Helper()
	want := map[string]int64{}
	for _, b := range bookings {
		want[b.AccountID] += b.Cents
	}
	var accounts []struct {
		ID              string `db:"account_id"`
		Opened, Balance int64
	}
	require.NoError(t, db.Select(t.Context(), &accounts, "SELECT account_id, opened, balance FROM bank_account"))
	opened, held := int64(0), int64(0)
	for _, a := range accounts {
		require.Equal(t, a.Opened+want[a.ID], a.Balance, a.ID)
		opened, held = opened+a.Opened, held+a.Balance
	}
	require.Positive(t, opened)
	require.Equal(t, opened, held)
}

func verifyNothingIsLeft(t *testing.T, db *schema.DB) {
	t.Helper()
	backlog, err := outbox.NewStore(db).Backlog(t.Context())
	require.NoError(t, err)
	require.Zero(t, backlog)
	require.Zero(t, deadlines(t, db))
}

func deadlines(t *testing.T, db *schema.DB) (n int) {
	t.Helper()
	require.NoError(t, db.Get(t.Context(), &n, "SELECT count(*) FROM {deadline}"))
	return n
}
