package bank_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// run runs a confirmer until the returned function, which waits for it.
func (b branch) run(to bank.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error)
	go func() { done <- bank.NewConfirmer(b.Bank, to).Run(ctx) }()
	return func() {
		cancel()
		require.NoError(b.t, <-done)
	}
}

func TestConfirmationComesAfterItsDelayAndOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b, to := open(t, db), &recorder{}
		defer b.run(to)()
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		require.NoError(t, b.Credit(t.Context(), credit("t1")))
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, to.taken())
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []any{transfer.DebitConfirmed{TransferID: "t1"}, transfer.CreditConfirmed{TransferID: "t1"}}, to.taken())
		require.Empty(t, b.owed())
	})
}

func TestConfirmationOwedSinceBeforeTheStartIsDelivered(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b, to := open(t, db), &recorder{}
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		time.Sleep(time.Hour)
		defer b.run(to)()
		synctest.Wait()
		require.Equal(t, []any{transfer.DebitConfirmed{TransferID: "t1"}}, to.taken())
	})
}

func TestConfirmationThatFailsStaysOwedAndHoldsBackNoOther(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		broken := true
		to := &recorder{fail: func(event any) error {
			if event == (transfer.DebitConfirmed{TransferID: "t1"}) && broken {
				return errors.New("the line is dead")
			}
			return nil
		}}
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		time.Sleep(time.Millisecond)
		require.NoError(t, b.Credit(t.Context(), credit("t1")))
		time.Sleep(time.Minute)
		delivered, err := bank.NewConfirmer(b.Bank, to).Deliver(t.Context())
		require.ErrorContains(t, err, "bank: confirm DebitAccount t1: the line is dead")
		require.Equal(t, 2, delivered)
		require.Equal(t, []string{"t1 DebitAccount"}, b.owed())

		broken = false
		_, err = bank.NewConfirmer(b.Bank, to).Deliver(t.Context())
		require.NoError(t, err)
		require.Empty(t, b.owed())
	})
}
