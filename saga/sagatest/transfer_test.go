package sagatest_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

type (
	TransferRequested struct {
		TransferID, SourceAccountID, TargetAccountID string
		Amount                                       decimal.Decimal
	}
	DebitConfirmed  struct{ TransferID string }
	CreditConfirmed struct{ TransferID string }

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
	lifecycle.End()
}

func (s *TransferSaga) OnPaymentTimeout(commands saga.Commands) {
	commands.Send(ReverseDebit{AccountID: s.SourceAccountID, Amount: s.Amount})
}

var Transfers = fxmodule.Saga[TransferSaga]("transfer-saga",
	saga.Start((*TransferSaga).OnRequested, saga.By("transferId")),
	saga.On((*TransferSaga).OnDebitConfirmed, saga.By("transferId")),
	saga.On((*TransferSaga).OnCreditConfirmed, saga.By("transferId")),
	saga.OnDeadline(paymentTimeout, (*TransferSaga).OnPaymentTimeout, saga.Ends()),
)

var amount = decimal.RequireFromString("12.34")

func TestConfirmedDebitIsFollowedByTheCredit(t *testing.T) {
	sagatest.Test(t, "transfer-saga", func(f *sagatest.Fixture[TransferSaga]) {
		f.Given(TransferRequested{"t1", "alice", "bob", amount})
		f.When(DebitConfirmed{"t1"})
		f.ExpectCommands(CreditAccount{"bob", amount})
		f.ExpectOnlyDeadlines()
	}, Transfers)
}

func TestUnconfirmedDebitIsReversedAfterHalfAnHour(t *testing.T) {
	sagatest.Test(t, "transfer-saga", func(f *sagatest.Fixture[TransferSaga]) {
		f.Given(TransferRequested{"t1", "alice", "bob", amount})
		f.WhenTimePasses(30 * time.Minute)
		f.ExpectCommands(ReverseDebit{"alice", amount})
		f.ExpectEnded()
	}, Transfers)
}

func TestCase0125TransferIsCompletedOrReversed(t *testing.T) {
	sagatest.Test(t, "transfer-saga", func(f *sagatest.Fixture[TransferSaga]) {
		f.Given(TransferRequested{"t1", "alice", "bob", amount}, TransferRequested{"t2", "eve", "bob", amount})
		f.When(DebitConfirmed{"t1"})
		f.ExpectCommands(CreditAccount{"bob", amount})
		f.ExpectCancelled(paymentTimeout)
		f.ExpectOnlyDeadlines(sagatest.After(paymentTimeout, 30*time.Minute)) // that of t2
		f.When(CreditConfirmed{"t1"})
		f.Saga("t1").ExpectEnded()
		f.WhenTimePasses(30*time.Minute - time.Microsecond)
		f.ExpectNothing()
		f.WhenRestarted()
		f.WhenTimePasses(time.Microsecond)
		f.ExpectCommands(ReverseDebit{"eve", amount})
		f.Saga("t2").ExpectEnded()
	}, Transfers, sagatest.OnBoth())
}

func TestWiringOfTheTransfersIsComplete(t *testing.T) {
	sagatest.Check(t, Transfers, fxmodule.ConfigFile(""))
}
