package transfer_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 30 * time.Minute

var (
	amount          = decimal.RequireFromString("12.34")
	requested       = transfer.TransferRequested{TransferID: "t1", SourceAccountID: "a", TargetAccountID: "b", Amount: amount}
	debitConfirmed  = transfer.DebitConfirmed{TransferID: "t1"}
	creditConfirmed = transfer.CreditConfirmed{TransferID: "t1"}

	debit         = transfer.DebitAccount{TransferID: "t1", AccountID: "a", Amount: amount}
	credit        = transfer.CreditAccount{TransferID: "t1", AccountID: "b", Amount: amount}
	reverseDebit  = transfer.ReverseDebit{TransferID: "t1", AccountID: "a", Amount: amount}
	reverseCredit = transfer.ReverseCredit{TransferID: "t1", AccountID: "b", Amount: amount}
)

// test runs a body on both databases, with timeouts of half an hour.
func test(t *testing.T, body func(f *sagatest.Fixture[transfer.TransferSaga])) {
	t.Helper()
	sagatest.Test(t, transfer.Type, body, transfer.Module, sagatest.Provide(&transfer.Settings{Timeout: timeout}), sagatest.OnBoth())
}

func TestConfirmedTransferCompletesAndLeavesNoDeadline(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.When(requested)
		f.ExpectCommands(debit)
		f.ExpectOnlyDeadlines(sagatest.After(transfer.PaymentTimeout, timeout))
		f.When(debitConfirmed)
		f.ExpectCommands(credit)
		f.ExpectOnlyDeadlines(sagatest.After(transfer.CreditTimeout, timeout))
		f.ExpectOpen()
		f.When(creditConfirmed)
		f.ExpectNoCommands()
		f.ExpectOnlyDeadlines()
		f.ExpectEnded()
		f.WhenTimePasses(10 * timeout)
		f.ExpectNothing()
	})
}

func TestTransferWithoutDebitConfirmationIsReversedAtItsTimeoutAndNotBefore(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.Given(requested)
		f.WhenTimePasses(timeout - time.Microsecond)
		f.ExpectNothing()
		f.WhenTimePasses(time.Microsecond)
		f.ExpectCommands(reverseDebit)
		f.ExpectEnded()
	})
}

func TestTransferWithoutCreditConfirmationIsReversedOnBothSides(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.Given(requested)
		f.GivenTimePasses(timeout - time.Second)
		f.When(debitConfirmed)
		f.WhenTimePasses(timeout - time.Microsecond) // the credit has the whole time again
		f.ExpectOpen()
		f.ExpectCommands(credit)
		f.WhenTimePasses(time.Microsecond)
		f.ExpectCommands(reverseCredit, reverseDebit)
		f.ExpectEnded()
	})
}

func TestTimeoutsSurviveARestart(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.Given(requested, debitConfirmed)
		f.WhenRestarted()
		f.WhenTimePasses(timeout)
		f.ExpectCommands(reverseCredit, reverseDebit)
	})
}

func TestConfirmationBehindTheTimeoutChangesNothing(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.Given(requested)
		f.GivenTimePasses(timeout)
		for _, event := range []any{debitConfirmed, creditConfirmed, requested} {
			f.When(event)
		}
		f.WhenTimePasses(timeout)
		f.ExpectNothing()
		f.ExpectEnded()
	})
}

func TestStateTellsHowATransferEnded(t *testing.T) {
	for name, c := range map[string]struct {
		events    []any
		completed bool
		timedOut  string
	}{
		"completed":              {[]any{requested, debitConfirmed, creditConfirmed}, true, ""},
		"no debit confirmation":  {[]any{requested}, false, transfer.PaymentTimeout},
		"no credit confirmation": {[]any{requested, debitConfirmed}, false, transfer.CreditTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
				f.Given(c.events...)
				f.WhenTimePasses(timeout)
				f.ExpectEnded()
				state := f.State()
				require.Equal(f.T(), c.completed, state.Completed())
				require.Equal(f.T(), c.timedOut, state.TimedOut)
			})
		})
	}
}

func TestStoredTransferIsRead(t *testing.T) {
	test(t, func(f *sagatest.Fixture[transfer.TransferSaga]) {
		f.Given(requested)
		for i, err := range f.Engine().Instances(f.Context(), saga.Query{Type: transfer.Type}) {
			require.NoError(f.T(), err)
			state, err := transfer.Of(i)
			require.NoError(f.T(), err)
			require.Equal(f.T(), f.State(), state)
		}
	})
}

func TestTheModuleIsComplete(t *testing.T) {
	sagatest.Check(t, transfer.Module, fxmodule.ConfigFile(""))
}

func TestTimeoutMustBePositive(t *testing.T) {
	require.EqualError(t, (&transfer.Settings{}).Validate(), "timeout must be more than 0, got 0s")
	require.NoError(t, (&transfer.Settings{Timeout: 1}).Validate())
}
