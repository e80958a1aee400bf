package transfer

import (
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/norn-go/norn/saga"
)

// Type is the name under which transfers are stored.
const Type = "transfer-saga"

// The deadlines of a transfer.
const (
	PaymentTimeout = "payment-timeout" // no confirmation of the debit
	CreditTimeout  = "credit-timeout"  // no confirmation of the credit
)

// TransferSaga is the state of one transfer.
type TransferSaga struct { //nolint:revive // the saga type is called transfer-saga
	TransferID, SourceAccountID, TargetAccountID string
	Amount                                       decimal.Decimal
	DebitConfirmed, CreditConfirmed              bool
	TimedOut                                     string // the deadline that fired
}

// Completed reports whether the money moved; an ended transfer that is not completed was compensated.
func (s *TransferSaga) Completed() bool { return s.DebitConfirmed && s.CreditConfirmed }

// OnRequested asks for the debit and gives it a time limit.
func (s *TransferSaga) OnRequested(e TransferRequested, commands saga.Commands, deadlines saga.Deadlines, settings *Settings) {
	s.TransferID, s.SourceAccountID, s.TargetAccountID, s.Amount = e.TransferID, e.SourceAccountID, e.TargetAccountID, e.Amount
	commands.Send(DebitAccount{TransferID: s.TransferID, AccountID: s.SourceAccountID, Amount: s.Amount})
	deadlines.Schedule(PaymentTimeout, settings.Timeout)
}

// OnDebitConfirmed asks for the credit and gives it a time limit of its own.
func (s *TransferSaga) OnDebitConfirmed(_ DebitConfirmed, commands saga.Commands, deadlines saga.Deadlines, settings *Settings) {
	s.DebitConfirmed = true
	commands.Send(CreditAccount{TransferID: s.TransferID, AccountID: s.TargetAccountID, Amount: s.Amount})
	deadlines.Cancel(PaymentTimeout)
	deadlines.Schedule(CreditTimeout, settings.Timeout)
}

// OnCreditConfirmed completes the transfer; its deadline goes with it.
func (s *TransferSaga) OnCreditConfirmed(_ CreditConfirmed, lifecycle saga.Lifecycle) {
	s.CreditConfirmed = true
	if s.Completed() {
		lifecycle.End()
	}
}

// OnPaymentTimeout takes the debit back.
func (s *TransferSaga) OnPaymentTimeout(commands saga.Commands) {
	s.TimedOut = PaymentTimeout
	commands.Send(ReverseDebit{TransferID: s.TransferID, AccountID: s.SourceAccountID, Amount: s.Amount})
}

// OnCreditTimeout takes the credit back, and then the debit.
func (s *TransferSaga) OnCreditTimeout(commands saga.Commands) {
	s.TimedOut = CreditTimeout
	commands.Send(ReverseCredit{TransferID: s.TransferID, AccountID: s.TargetAccountID, Amount: s.Amount})
	commands.Send(ReverseDebit{TransferID: s.TransferID, AccountID: s.SourceAccountID, Amount: s.Amount})
}

// Options is the definition of the saga type, for fxmodule.Saga and for tests.
func Options() []saga.Option {
	return []saga.Option{
		saga.Start((*TransferSaga).OnRequested, saga.By("transferId")),
		saga.On((*TransferSaga).OnDebitConfirmed, saga.By("transferId")),
		saga.On((*TransferSaga).OnCreditConfirmed, saga.By("transferId")),
		saga.OnDeadline(PaymentTimeout, (*TransferSaga).OnPaymentTimeout, saga.Ends()),
		saga.OnDeadline(CreditTimeout, (*TransferSaga).OnCreditTimeout, saga.Ends()),
	}
}

// Of reads the state of a stored transfer.
func Of(i saga.Instance) (TransferSaga, error) {
	var s TransferSaga
	if err := (saga.JSON{}).Unmarshal(i.State, &s); err != nil {
		return TransferSaga{}, fmt.Errorf("transfer: state of %s: %w", i.Key, err)
	}
	return s, nil
}
