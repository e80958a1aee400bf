package transfer_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 30 * time.Minute

var amount = decimal.RequireFromString("12.34")

// desk is an engine for transfers whose commands are written down and whose deadlines are swept by hand.
type desk struct {
	*saga.Engine
	t      *testing.T
	relay  *outbox.Relay
	poller *poller.Poller
	sent   []string
}

func open(t *testing.T, db *schema.DB) *desk {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	d := &desk{t: t}
	var err error
	d.Engine, err = saga.New(db, saga.Config{Logger: quiet, Service: saga.Services(&transfer.Settings{Timeout: timeout})},
		saga.MustDefine[transfer.TransferSaga](transfer.Type, transfer.Options()...))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	d.relay, err = outbox.NewRelay(outbox.NewStore(db), lease.New(db, "relay", lease.Config{Logger: quiet}),
		outbox.Config{Logger: quiet, Sink: outbox.SinkFunc(func(_ context.Context, c outbox.Command) error {
			d.sent = append(d.sent, c.Type+" "+string(c.Payload))
			return nil
		})})
	require.NoError(t, err)
	d.poller, err = poller.New(deadline.NewStore(db), lease.New(db, "poller", lease.Config{Logger: quiet}), d.Engine,
		poller.Config{Logger: quiet, Now: d.Now})
	require.NoError(t, err)
	return d
}

// handle gives events to the engine, each under an id of its own.
func (d *desk) handle(events ...any) {
	d.t.Helper()
	for _, e := range events {
		require.NoError(d.t, d.Handle(d.t.Context(), e))
	}
}

// pass lets time go by and then fires what is due.
func (d *desk) pass(length time.Duration) {
	d.t.Helper()
	time.Sleep(length)
	require.NoError(d.t, d.poller.Sweep(d.t.Context()))
}

// commands returns what was sent since the last call.
func (d *desk) commands() []string {
	d.t.Helper()
	d.sent = nil
	require.NoError(d.t, d.relay.Flush(d.t.Context()))
	return d.sent
}

// pending lists the names of the transfer's deadlines.
func (d *desk) pending() (names []string) {
	d.t.Helper()
	all, err := d.Deadlines(d.t.Context(), saga.Key{Type: transfer.Type, ID: "t1"})
	require.NoError(d.t, err)
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

func (d *desk) ended() bool {
	d.t.Helper()
	i, err := d.Instance(d.t.Context(), saga.Key{Type: transfer.Type, ID: "t1"})
	require.NoError(d.t, err)
	return i.Ended
}

var (
	requested       = transfer.TransferRequested{TransferID: "t1", SourceAccountID: "a", TargetAccountID: "b", Amount: amount}
	debitConfirmed  = transfer.DebitConfirmed{TransferID: "t1"}
	creditConfirmed = transfer.CreditConfirmed{TransferID: "t1"}
)

const (
	debit         = `transfer.DebitAccount {"transferId":"t1","accountId":"a","amount":"12.34"}`
	credit        = `transfer.CreditAccount {"transferId":"t1","accountId":"b","amount":"12.34"}`
	reverseDebit  = `transfer.ReverseDebit {"transferId":"t1","accountId":"a","amount":"12.34"}`
	reverseCredit = `transfer.ReverseCredit {"transferId":"t1","accountId":"b","amount":"12.34"}`
)

func TestConfirmedTransferCompletesAndLeavesNoDeadline(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d := open(t, db)
		d.handle(requested)
		require.Equal(t, []string{debit}, d.commands())
		require.Equal(t, []string{transfer.PaymentTimeout}, d.pending())
		d.handle(debitConfirmed)
		require.Equal(t, []string{credit}, d.commands())
		require.Equal(t, []string{transfer.CreditTimeout}, d.pending())
		require.False(t, d.ended())
		d.handle(creditConfirmed)
		require.True(t, d.ended())
		require.Empty(t, d.pending())
		d.pass(10 * timeout)
		require.Empty(t, d.commands())
	})
}

func TestTransferWithoutDebitConfirmationIsReversedAtItsTimeoutAndNotBefore(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d := open(t, db)
		d.handle(requested)
		d.pass(timeout - time.Microsecond)
		require.False(t, d.ended())
		d.pass(time.Microsecond)
		require.True(t, d.ended())
		require.Equal(t, []string{debit, reverseDebit}, d.commands(), "the reversal comes behind the debit")
	})
}

func TestTransferWithoutCreditConfirmationIsReversedOnBothSides(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d := open(t, db)
		d.handle(requested)
		d.pass(timeout - time.Second)
		d.handle(debitConfirmed)
		d.pass(timeout - time.Microsecond)
		require.False(t, d.ended(), "the credit has the whole time again")
		d.pass(time.Microsecond)
		require.True(t, d.ended())
		require.Equal(t, []string{debit, credit, reverseCredit, reverseDebit}, d.commands())
	})
}

func TestConfirmationBehindTheTimeoutChangesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d := open(t, db)
		d.handle(requested)
		d.pass(timeout)
		require.Equal(t, []string{debit, reverseDebit}, d.commands())
		d.handle(debitConfirmed, creditConfirmed, requested)
		d.pass(timeout)
		require.Empty(t, d.commands())
		require.True(t, d.ended())
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
			schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
				d := open(t, db)
				d.handle(c.events...)
				d.pass(timeout)
				i, err := d.Instance(t.Context(), saga.Key{Type: transfer.Type, ID: "t1"})
				require.NoError(t, err)
				require.True(t, i.Ended)
				state, err := transfer.Of(i)
				require.NoError(t, err)
				require.Equal(t, c.completed, state.Completed())
				require.Equal(t, c.timedOut, state.TimedOut)
			})
		})
	}
}

func TestTimeoutMustBePositive(t *testing.T) {
	require.EqualError(t, (&transfer.Settings{}).Validate(), "timeout must be more than 0, got 0s")
	require.NoError(t, (&transfer.Settings{Timeout: 1}).Validate())
}
