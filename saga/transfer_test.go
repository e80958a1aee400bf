package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// The transfer of the worked example, as an application would write it.

type (
	TransferRequested struct {
		TransferID      string `json:"transferId"`
		SourceAccountID string `json:"sourceAccountId"`
		TargetAccountID string `json:"targetAccountId"`
		Amount          decimal.Decimal
	}
	DebitConfirmed struct {
		TransferID string `json:"transferId"`
	}
	CreditConfirmed struct {
		TransferID string `json:"transferId"`
	}
	DebitAccount struct {
		AccountID string
		Amount    decimal.Decimal
	}
	CreditAccount struct {
		AccountID string
		Amount    decimal.Decimal
	}
	ReverseDebit struct {
		AccountID string
		Amount    decimal.Decimal
	}
)

type TransferSaga struct {
	TransferID, SourceAccountID, TargetAccountID string
	Amount                                       decimal.Decimal
	DebitConfirmed, CreditConfirmed              bool
}

const paymentTimeout = "payment-timeout"

func (s *TransferSaga) OnRequested(e TransferRequested, commands saga.Commands, deadlines saga.Deadlines) {
	s.TransferID, s.SourceAccountID, s.TargetAccountID, s.Amount = e.TransferID, e.SourceAccountID, e.TargetAccountID, e.Amount
	commands.Send(DebitAccount{AccountID: e.SourceAccountID, Amount: e.Amount})
	deadlines.Schedule(paymentTimeout, 30*time.Minute)
}

func (s *TransferSaga) OnDebitConfirmed(_ DebitConfirmed, commands saga.Commands, deadlines saga.Deadlines) {
	s.DebitConfirmed = true
	commands.Send(CreditAccount{AccountID: s.TargetAccountID, Amount: s.Amount})
	deadlines.Cancel(paymentTimeout)
}

func (s *TransferSaga) OnCreditConfirmed(_ CreditConfirmed, lifecycle saga.Lifecycle) {
	s.CreditConfirmed = true
	if s.DebitConfirmed {
		lifecycle.End()
	}
}

func (s *TransferSaga) OnPaymentTimeout(commands saga.Commands) {
	commands.Send(ReverseDebit{AccountID: s.SourceAccountID, Amount: s.Amount})
}

func transfer(t *testing.T) *saga.Definition {
	t.Helper()
	d, err := saga.Define[TransferSaga]("transfer-saga",
		saga.Start((*TransferSaga).OnRequested, saga.By("transferId")),
		saga.On((*TransferSaga).OnDebitConfirmed, saga.By("transferId")),
		saga.On((*TransferSaga).OnCreditConfirmed, saga.By("transferId")),
		saga.OnDeadline(paymentTimeout, (*TransferSaga).OnPaymentTimeout, saga.Ends()),
	)
	require.NoError(t, err)
	return d
}

func requested(id string) TransferRequested {
	return TransferRequested{TransferID: id, SourceAccountID: "a", TargetAccountID: "b", Amount: decimal.RequireFromString("12.34")}
}

func newEngine(t *testing.T, db *schema.DB, cfg saga.Config, defs ...*saga.Definition) *saga.Engine {
	t.Helper()
	e, err := saga.New(db, cfg, defs...)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// sweep fires what is due, once, by hand.
func sweep(t *testing.T, db *schema.DB, e *saga.Engine) (fired int, errs []error) {
	t.Helper()
	due, err := deadline.NewStore(db).Find(context.Background(), deadline.Sweep{Kinds: e.Kinds(), Cutoff: e.Now(), Limit: 1000})
	require.NoError(t, err)
	for _, d := range due {
		if err := e.Dispatch(context.Background(), d); err != nil {
			errs = append(errs, err)
		}
	}
	return len(due), errs
}

// commandTypes lists the types of the stored commands in their order.
func commandTypes(t *testing.T, db *schema.DB) []string {
	t.Helper()
	var rows []struct{ Type string }
	require.NoError(t, db.Select(context.Background(), &rows, "SELECT type FROM {command} ORDER BY seq"))
	types := make([]string, len(rows))
	for i, r := range rows {
		types[i] = r.Type
	}
	return types
}

func TestCase0125ConfirmedTransferEndsWithItsTimeoutCancelled(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		ctx, e := t.Context(), newEngine(t, db, saga.Config{}, transfer(t))
		key := saga.Key{Type: "transfer-saga", ID: "t1"}
		require.NoError(t, e.Handle(ctx, requested("t1")))
		pending, err := e.Deadlines(ctx, key)
		require.NoError(t, err)
		require.Len(t, pending, 1)
		require.Equal(t, e.Now().Add(30*time.Minute), pending[0].Due.Time)

		require.NoError(t, e.Handle(ctx, DebitConfirmed{"t1"}))
		pending, err = e.Deadlines(ctx, key)
		require.NoError(t, err)
		require.Empty(t, pending)

		require.NoError(t, e.Handle(ctx, &CreditConfirmed{"t1"}))
		got, err := e.Instance(ctx, key)
		require.NoError(t, err)
		require.True(t, got.Ended)
		require.EqualValues(t, 3, got.Version)
		require.Equal(t, []string{"saga_test.DebitAccount", "saga_test.CreditAccount"}, commandTypes(t, db))
	})
}

func TestCase0125UnconfirmedTransferIsReversedAfterThirtyMinutes(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		ctx, e := t.Context(), newEngine(t, db, saga.Config{}, transfer(t))
		require.NoError(t, e.Handle(ctx, requested("t1")))
		time.Sleep(30*time.Minute - time.Microsecond)
		fired, _ := sweep(t, db, e)
		require.Zero(t, fired)
		time.Sleep(time.Microsecond)
		fired, errs := sweep(t, db, e)
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		got, err := e.Instance(ctx, saga.Key{Type: "transfer-saga", ID: "t1"})
		require.NoError(t, err)
		require.True(t, got.Ended)
		require.Equal(t, []string{"saga_test.DebitAccount", "saga_test.ReverseDebit"}, commandTypes(t, db))
		require.NoError(t, e.Handle(ctx, requested("t1")))
		require.EqualValues(t, 1, e.Stats().Ignored)
	})
}
